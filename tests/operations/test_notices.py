"""People are told once of what went wrong, by each channel that the workflow names, whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import select

from dalsegno.operations.lateness import Lateness
from dalsegno.operations.notifying import GIVEN_UP, Sender
from dalsegno.settings import ChannelSettings, ChannelType, Encryption
from dalsegno.store import service_tables
from dalsegno.store.row_queries import rows
from tests.engine.support import FAILED, Place, expression, noop, shell
from tests.operations.conftest import Clock
from tests.operations.dying import end_run
from tests.services.receivers import HttpReceiver, SmtpReceiver, http_receiver, smtp_receiver
from tests.store.crashes import killed_at

BAD = shell("bad", "echo no luck >&2; exit 1", retry_policy={"error_retry_limit": 0})
OPS = {"alerting": {"on_failure": ["ops"]}}


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as made:
        yield made


@pytest.fixture
def mail() -> Iterator[SmtpReceiver]:
    with smtp_receiver() as made:
        yield made


def waiting(place: Place) -> list[dict[str, Any]]:
    with place.operations.store.database.reading() as connection:
        return [dict(row) for row in rows(connection, select(service_tables.outbox))]


def sender(place: Place, *channels: ChannelSettings) -> Sender:
    operations = place.operations
    settings = replace(operations.settings, notifications={channel.name: channel for channel in channels})
    return Sender(settings, operations.store, operations.clock)


def webhook(receiver: HttpReceiver, name: str = "ops", **fields: Any) -> ChannelSettings:
    return ChannelSettings(name, url=f"{receiver.url}/hook", **fields)


def lateness(place: Place) -> Lateness:
    return Lateness(place.operations.settings, place.operations.store, place.operations.clock)


# What is told.


def test_a_failed_run_leaves_one_message_per_channel(either_place: Place, receiver: HttpReceiver) -> None:
    run = either_place.do(BAD, properties={"alerting": {"on_failure": ["ops", "more"]}})
    assert run.status is FAILED
    assert sorted(row["channel"] for row in waiting(either_place)) == ["more", "ops"]

    sending = sender(either_place, webhook(receiver), webhook(receiver, "more"))
    assert sending.send() == 2
    assert sending.send() == 0

    bodies = [posted.body for posted in receiver.posted]
    assert {body["id"] for body in bodies} == {posted.headers["idempotency-key"] for posted in receiver.posted}
    assert len({body["id"] for body in bodies}) == 2
    assert {body["title"] for body in bodies} == {"w/1 has failed"}
    assert bodies[0]["run_id"] == run.id
    assert (bodies[0]["kind"], bodies[0]["status"], bodies[0]["hint"]) == ("run_failed", "FAILED", "dalsegno show w/1")
    assert bodies[0]["text"].startswith("bad: ")


def test_a_run_that_succeeds_or_tells_nobody_leaves_none(either_place: Place) -> None:
    either_place.do(noop("a"), properties=OPS)
    either_place.do(BAD)
    either_place.do(BAD, properties={**OPS, "alerting_disabled": True})

    assert waiting(either_place) == []


def test_every_failure_of_a_run_is_told(either_place: Place) -> None:
    run = either_place.do(BAD, properties=OPS)
    either_place.operations.runs.restart(run.id)
    assert either_place.finish(run).attempt == 2

    assert [row["message"]["attempt"] for row in waiting(either_place)] == [1, 2]


def test_a_run_that_could_not_begin_is_told(either_place: Place) -> None:
    either_place.push("w", noop("a"), properties=OPS, params={"x": expression("1 / 0")})
    operations = either_place.operations
    operations.machinery.start_by_trigger(operations.machinery.versions.named("w", "latest"), "key", {"type": "TIME"})

    [row] = waiting(either_place)
    assert row["message"]["status"] == "FAILED"


def test_a_late_run_is_told_once(either_place: Place, clock: Clock) -> None:
    properties = {"alerting": {"on_late": "ops", "complete_within": "2h"}}
    either_place.push("w", noop("a"), properties=properties)
    run = either_place.start("w")

    clock.pass_by(minutes=119)
    lateness(either_place).tell_of_late_runs()
    assert waiting(either_place) == []
    clock.pass_by(minutes=2)
    for _ in range(2):
        lateness(either_place).tell_of_late_runs()
    [row] = waiting(either_place)
    assert (row["message"]["kind"], row["message"]["title"]) == ("run_late", "w/1 has not completed in time")

    either_place.finish(run)
    clock.pass_by(days=1)
    lateness(either_place).tell_of_late_runs()
    assert len(waiting(either_place)) == 1


def test_killed_at_any_moment_there_is_one_message(tmp_path: Path) -> None:
    """The end of a run and the message of it are saved together, or not at all."""
    moment, was_killed = -2, True
    while was_killed:
        moment += 3
        folder = tmp_path / str(moment)
        folder.mkdir()
        place = Place.at(folder)
        place.push("w", noop("a"), properties=OPS)
        place.start("w")
        was_killed = killed_at(moment, end_run, str(folder))
        has_ended = place.operations.runs.get("w/1").status is FAILED
        assert len(waiting(place)) == has_ended
        end_run(str(folder))
        [row] = waiting(place)
        assert (row["channel"], row["message"]["run"]) == ("ops", "w/1")
        place.operations.close()
    assert moment > 5


# How it is sent.


def test_what_fails_is_tried_again_and_less_and_less_often(
    either_place: Place, clock: Clock, receiver: HttpReceiver
) -> None:
    receiver.answers = [500, 302, 200]
    either_place.do(BAD, properties=OPS)
    sending = sender(either_place, webhook(receiver, headers={"Authorization": "Bearer s3cret"}))

    assert (sending.send(), sending.send()) == (1, 0)
    clock.pass_by(seconds=10)
    assert (sending.send(), sending.send()) == (1, 0)
    clock.pass_by(seconds=19)
    assert sending.send() == 0
    clock.pass_by(seconds=1)
    assert sending.send() == 1

    # A redirection is not followed.
    assert [posted.path for posted in receiver.posted] == ["/hook"] * 3
    assert {posted.headers["authorization"] for posted in receiver.posted} == {"Bearer s3cret"}
    [row] = waiting(either_place)
    assert (row["attempts"], row["next_at"], row["problem"]) == (3, None, None)
    assert row["sent_at"] == clock.now


def test_it_is_given_up_after_a_day(
    either_place: Place, clock: Clock, receiver: HttpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answers = [503]
    either_place.do(BAD, properties=OPS)
    sending, began = sender(either_place, webhook(receiver)), clock.now
    while waiting(either_place)[0]["next_at"] is not None:
        clock.now = waiting(either_place)[0]["next_at"]
        sending.send()

    [row] = waiting(either_place)
    assert clock.now - began <= GIVEN_UP
    assert clock.now - began > GIVEN_UP - timedelta(hours=2)
    assert (row["sent_at"], row["problem"]) == (None, "The webhook of ops answered 503.")
    [given_up] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "gives up telling ops that w/1 has failed" in given_up.getMessage()


def test_a_channel_that_is_not_there(either_place: Place, clock: Clock, receiver: HttpReceiver) -> None:
    either_place.do(BAD, properties=OPS)
    sender(either_place).send()

    assert "There is no channel 'ops'; the settings name none." in waiting(either_place)[0]["problem"]
    clock.pass_by(hours=1)
    sender(either_place, webhook(receiver)).send()
    assert len(receiver.posted) == 1


def test_a_secret_address_is_not_told(either_place: Place, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    either_place.do(BAD, properties=OPS)
    sender(either_place, ChannelSettings("ops", url="http://127.0.0.1:9/services/T0SECRET")).send()

    assert "cannot be reached" in waiting(either_place)[0]["problem"]
    assert "T0SECRET" not in str(waiting(either_place)) + caplog.text


def test_two_who_send_at_once_send_one(either_place: Place, receiver: HttpReceiver) -> None:
    either_place.do(BAD, properties=OPS)
    together = Barrier(3)

    def send() -> None:
        sending = sender(either_place, webhook(receiver))
        together.wait()
        sending.send()

    threads = [Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receiver.posted) == 1


def test_slack(place: Place, receiver: HttpReceiver) -> None:
    place.do(shell("bad", "exit 1", retry_policy={"error_retry_limit": 0}), properties=OPS)
    sender(place, webhook(receiver, type=ChannelType.SLACK)).send()

    [posted] = receiver.posted
    assert set(posted.body) == {"text"}
    assert posted.body["text"].splitlines()[0] == "*w/1 has failed*"
    assert posted.body["text"].splitlines()[-1] == "dalsegno show w/1"
    assert not {"<", ">"} & set(posted.body["text"])


def test_mail(place: Place, mail: SmtpReceiver) -> None:
    place.do(BAD, properties=OPS)
    channel = ChannelSettings(
        "ops",
        ChannelType.EMAIL,
        host="127.0.0.1",
        port=mail.port,
        encryption=Encryption.NONE,
        sender="dalsegno@example.com",
        to=("ada@example.com", "ops@example.com"),
    )
    sender(place, channel).send()

    [(origin, to, letter)] = mail.letters
    assert (origin, to) == ("dalsegno@example.com", ["ada@example.com", "ops@example.com"])
    assert letter["Subject"] == "w/1 has failed"
    assert letter["To"] == "ada@example.com, ops@example.com"
    assert letter["Message-ID"].endswith("@dalsegno>")
    assert "bad: " in letter.get_content()
    assert waiting(place)[0]["next_at"] is None


def test_mail_without_the_encryption_that_was_asked_for_is_not_sent(place: Place, mail: SmtpReceiver) -> None:
    place.do(BAD, properties=OPS)
    fields: dict[str, Any] = {"host": "127.0.0.1", "port": mail.port, "sender": "a@b.c", "to": ("d@e.f",)}
    sender(place, ChannelSettings("ops", ChannelType.EMAIL, **fields)).send()

    assert mail.letters == []
    assert "did not take it" in waiting(place)[0]["problem"]
