"""HTTP steps whose jobs go on at a real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dalsegno.errors import PlatformError
from dalsegno.model.outcomes import Failed, FailureKind, Stopped, Succeeded
from dalsegno.settings import Settings
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.http.runner import HttpRunner
from tests.steps.job_server import JobServer, job_server
from tests.steps.support import attempt, failure, log_text

HTTP = HttpRunner()


@pytest.fixture
def server() -> Iterator[JobServer]:
    with job_server() as made:
        yield made


def job(root: Path, server: JobServer, poll: Mapping[str, Any] | None = None, **more: Any) -> Work:
    """An attempt that begins a job; ``more`` are other parameters and fields of ``http``."""
    params = {name: more.pop(name) for name in ("state_expr",) if name in more}
    secrets = more.pop("secrets", ())
    polling = {"every": 0.05, **(poll or {})}
    block = {"url": server.url(), "method": "POST", "poll": polling, **more}
    settings = Settings(root=root, http_allow=("127.0.0.1",))
    return attempt(root, {"http": block, **params}, settings=settings, secrets=secrets)


def begun(work: Work) -> Work:
    started = HTTP.start(work)
    assert isinstance(started, Started), started
    return replace(work, handle=started.handle)


def looked(work: Work, times: int) -> None:
    for _ in range(times):
        state = HTTP.poll(work, 1)
        assert isinstance(state, Running), state


def end_of(work: Work) -> Any:
    state = HTTP.poll(work, 1)
    assert isinstance(state, Finished), state
    return state.outcome


def test_a_job_is_followed_to_its_end(tmp_path: Path, server: JobServer) -> None:
    work = begun(job(tmp_path, server))
    looked(work, 3)
    state = HTTP.poll(work, 1)
    assert isinstance(state, Running)
    assert state.progress is not None
    assert (state.progress.done, state.progress.unit) == (4, "looks")
    server.is_done = True
    assert end_of(work) == Succeeded({"status_code": 200, "response_body": '{"state": "done"}'})
    assert [(method, path) for method, path, _ in server.asked] == [("POST", "/jobs"), *[("GET", "/jobs/1")] * 5]
    # What has not changed is not told again.
    assert log_text(work).count("202") == 2


def test_it_looks_no_more_often_than_it_is_told(tmp_path: Path, server: JobServer) -> None:
    work = begun(job(tmp_path, server, {"every": 3600}))
    looked(work, 1)
    for _ in range(5):
        HTTP.poll(work, 0.01)
    assert server.count("GET") == 1


def test_another_machine_goes_on_looking(tmp_path: Path, server: JobServer) -> None:
    """With nothing but the handle."""
    work = begun(job(tmp_path, server))
    looked(work, 1)
    server.is_done = True
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert isinstance(end_of(replace(work, folder=elsewhere)), Succeeded)
    assert server.count("POST") == 1


def test_a_start_that_is_repeated_begins_no_other_job(tmp_path: Path, server: JobServer) -> None:
    work = job(tmp_path, server)
    first = begun(work)
    assert begun(work).handle == first.handle
    assert server.count("POST") == 1
    # Elsewhere nobody knows of the first: the server does, by the key.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert begun(replace(work, folder=elsewhere)).handle == first.handle
    assert (server.count("POST"), len(server.jobs)) == (2, 1)


def test_a_key_of_the_step_s_own(tmp_path: Path, server: JobServer) -> None:
    begun(job(tmp_path, server, headers={"idempotency-key": "mine"}))
    assert list(server.jobs) == ["mine"]


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_look_that_fails_is_no_end(tmp_path: Path, server: JobServer, status: int) -> None:
    work = begun(job(tmp_path, server))
    server.next_statuses = [status, status]
    looked(work, 2)
    server.is_done = True
    assert isinstance(end_of(work), Succeeded)


def test_a_server_that_is_away_for_a_while(tmp_path: Path) -> None:
    with job_server() as server:
        work = begun(job(tmp_path, server))
    looked(work, 2)
    assert "Connection refused" in log_text(work)


def test_a_job_that_is_unknown(tmp_path: Path, server: JobServer) -> None:
    work = begun(job(tmp_path, server))
    server.next_statuses = [404]
    outcome = end_of(work)
    assert isinstance(outcome, Failed)
    assert (outcome.kind, outcome.outputs["status_code"]) == (FailureKind.USER, 404)


def test_the_step_says_what_an_answer_means(tmp_path: Path, server: JobServer) -> None:
    expression = (
        "status_code == 409 ? 'USER_ERROR' : status_code == 410 ? 'STOPPED' : "
        "response_body.contains('done') ? 'DONE' : 'RUNNING'"
    )
    work = begun(job(tmp_path, server, state_expr=expression))
    server.next_statuses = [200, 500]
    looked(work, 3)
    server.is_done = True
    assert isinstance(end_of(work), Succeeded)
    server.next_statuses = [409, 410]
    outcome = end_of(work)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.USER
    assert isinstance(end_of(work), Stopped)


def test_an_address_with_values_of_the_answer(tmp_path: Path, server: JobServer) -> None:
    url = server.url("/of/{job.id}/{all.0.id}?q={job.id}")
    work = begun(job(tmp_path, server, {"url": url}))
    looked(work, 1)
    # A value stays a part of the path, whatever it holds.
    assert server.asked[-1][1] == "/of/a%2F1/1?q=a%2F1"
    # Only what is needed is stored.
    assert work.handle == {"begun": {"location": server.url("/jobs/1"), "values": {"job.id": "a/1", "all.0.id": 1}}}


def test_who_gets_which_headers(tmp_path: Path, server: JobServer) -> None:
    headers = {"Authorization": "Bearer hunter2", "X-Team": "a"}
    work = begun(job(tmp_path, server, headers=headers, secrets=("Bearer hunter2",)))
    looked(work, 1)
    assert (server.asked[-1][2]["authorization"], server.asked[-1][2]["x-team"]) == ("Bearer hunter2", "a")
    with job_server() as other:
        work = begun(job(tmp_path, server, {"url": other.url("/jobs/1")}, headers=headers))
        looked(work, 1)
        assert "authorization" not in other.asked[-1][2]
        own = {"url": other.url("/jobs/1"), "headers": {"Authorization": "for the other"}}
        looked(begun(job(tmp_path, server, own, headers=headers)), 1)
        assert other.asked[-1][2]["authorization"] == "for the other"


@pytest.mark.parametrize("header", ["Authorization", "X-Team"])
def test_a_server_that_names_another_host_does_not_get_it_secrets(
    tmp_path: Path, server: JobServer, header: str
) -> None:
    """Whether they are headers of the first request or of the looks: neither was meant for that host."""
    with job_server() as other:
        for poll, headers in (({}, {header: "a hunter2"}), ({"headers": {header: "a hunter2"}}, {})):
            work = begun(job(tmp_path, server, poll, headers=headers, secrets=("hunter2",)))
            begun_there = {"begun": {"location": other.url("/jobs/1"), "values": {}}}
            looked(replace(work, handle=begun_there), 1)
            assert header.lower() not in other.asked[-1][2]


def test_secrets_are_not_shown(tmp_path: Path, server: JobServer) -> None:
    work = job(tmp_path, server, {"url": server.url("/jobs/hunter2")}, secrets=("hunter2",))
    work = begun(work)
    state = HTTP.poll(work, 1)
    assert isinstance(state, Running)
    assert "hunter2" not in str(state)
    for file in work.folder.iterdir():
        assert b"hunter2" not in file.read_bytes()


def test_cancelling(tmp_path: Path, server: JobServer) -> None:
    HTTP.cancel(begun(job(tmp_path, server, {"cancel": {}})))
    assert server.asked[-1][:2] == ("DELETE", "/jobs/1")
    post = {"cancel": {"url": server.url("/jobs/{all.0.id}/cancel"), "method": "POST"}}
    HTTP.cancel(begun(job(tmp_path, server, post)))
    assert server.asked[-1][:2] == ("POST", "/jobs/2/cancel")
    # Somebody else cancels it, who knows nothing but the handle.
    work = begun(job(tmp_path, server, {"cancel": {}}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    HTTP.cancel(replace(work, folder=elsewhere))
    assert server.asked[-1][0] == "DELETE"


def test_what_is_over_need_not_be_cancelled(tmp_path: Path, server: JobServer) -> None:
    work = begun(job(tmp_path, server, {"cancel": {}}))
    server.next_statuses = [503, 410]
    HTTP.cancel(work)
    assert server.count("DELETE") == 2


def test_what_cannot_be_cancelled(tmp_path: Path, server: JobServer) -> None:
    work = begun(job(tmp_path, server, {"cancel": {}}))
    server.next_statuses = [500] * 5
    with pytest.raises(PlatformError, match=r"could not be cancelled .* 500"):
        HTTP.cancel(work)
    work = begun(job(tmp_path, server))
    asked = len(server.asked)
    HTTP.cancel(work)
    assert "it goes on at the server" in log_text(work)
    work = job(tmp_path, server, {"cancel": {}})
    HTTP.cancel(work)
    assert "not known whether the job was begun" in log_text(work)
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("path", "poll", "says"),
    [
        ("/silent", {}, "without a header Location"),
        ("/jobs", {"url": "http://127.0.0.1/{nothing.there}"}, "no text or number 'nothing.there'"),
        ("/jobs", {"url": "http://127.0.0.1/{job}"}, "no text or number 'job'"),
        ("/jobs", {"evry": 1}, "no field http.poll.evry"),
        ("/jobs", {"every": "often"}, "http.poll.every is 'often'"),
        ("/jobs", {"cancel": {"method": "END"}}, "http.poll.cancel.method is 'END'"),
    ],
)
def test_refusals(tmp_path: Path, server: JobServer, path: str, poll: dict[str, Any], says: str) -> None:
    failed = failure(HTTP, job(tmp_path, server, poll, url=server.url(path)))
    assert (failed.kind, says in failed.message) == (FailureKind.FATAL, True), failed


def test_a_request_that_is_refused_begins_nothing(tmp_path: Path, server: JobServer) -> None:
    failed = failure(HTTP, job(tmp_path, server, url=server.url("/jobs"), method="GET", headers={"X": "1"}))
    assert failed.kind is FailureKind.FATAL
    work = job(tmp_path, server, {"url": "http://10.0.0.1/"})
    outcome = end_of(begun(work))
    assert isinstance(outcome, Failed)
    assert "http_allow" in outcome.message


def test_without_poll_nothing_goes_on(tmp_path: Path, server: JobServer) -> None:
    work = job(tmp_path, server, state_expr="'RUNNING'")
    block = {"url": server.url(), "method": "POST"}
    failed = failure(HTTP, replace(work, params={**work.params, "http": block}))
    assert "http.poll" in str(failed.hint)
    assert server.count("POST") == 1
