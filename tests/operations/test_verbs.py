"""Every verb of the facade: who may use it, and what the audit log says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from inspect import isfunction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno.errors import Conflict, Forbidden, UnknownName, UserError
from dalsegno.model.callers import Caller, Role
from dalsegno.operations.admin import Admin, RecordedChange
from dalsegno.operations.audits import Audits
from dalsegno.operations.captures import Captures
from dalsegno.operations.checkpoints import Checkpoints
from dalsegno.operations.facade import Operations
from dalsegno.operations.models.verbs import Models
from dalsegno.operations.proving.request import ProofRequest
from dalsegno.operations.roles import LEAST_ROLE, READS, UNRECORDED
from dalsegno.operations.runs import Runs
from dalsegno.operations.signals import Signals
from dalsegno.operations.tables import Tables
from dalsegno.operations.templates import Templates
from dalsegno.operations.triggers import Triggers
from dalsegno.operations.workflows import Workflows
from dalsegno.store import audit_log
from tests.callers import admin
from tests.engine.support import FAILED, STOPPED, SUCCEEDED, Place, noop, shell

NAMESPACES = {
    "workflows": Workflows,
    "models": Models,
    "runs": Runs,
    "captures": Captures,
    "checkpoints": Checkpoints,
    "tables": Tables,
    "triggers": Triggers,
    "signals": Signals,
    "templates": Templates,
    "audits": Audits,
    "admin": Admin,
}
VERBS = {
    f"{name}.{verb}"
    for name, namespace in NAMESPACES.items()
    for verb, found in vars(namespace).items()
    if isfunction(found) and not verb.startswith("_")
}
TEMPLATE = "{definition: {job_type: Greet, version: v1, step_type: Shell, params: {}}}"


def test_every_verb_has_a_role_or_only_reads() -> None:
    assert {*LEAST_ROLE, *UNRECORDED, *READS} == VERBS
    assert not set(LEAST_ROLE) & set(UNRECORDED) and not READS & {*LEAST_ROLE, *UNRECORDED}


def test_every_namespace_is_on_the_facade() -> None:
    for name, namespace in NAMESPACES.items():
        assert vars(Operations)[name].func.__annotations__["return"] == namespace.__name__


def test_roles_include_those_below() -> None:
    roles = list(Role)
    for index, role in enumerate(roles):
        assert [Caller.of("x", [role]).may(least) for least in roles] == [place <= index for place in range(len(roles))]
    assert not Caller.of("nobody", []).may(Role.VIEWER)


@pytest.mark.parametrize("verb", sorted({*LEAST_ROLE, *UNRECORDED}))
def test_a_caller_without_the_role_is_refused_before_anything_is_opened(verb: str, tmp_path: Path) -> None:
    """The store's file is not even made."""
    from dalsegno.settings import load

    least = {**LEAST_ROLE, **UNRECORDED}[verb]
    below = [role for role in Role if not role.includes(least)]
    settings = load(working_folder=tmp_path, environment={})
    with Operations(None, settings, Caller.of("eve", below)) as operations:
        namespace, _, name = verb.partition(".")
        call = getattr(getattr(operations, namespace), name)
        with pytest.raises(Forbidden, match=f"{verb} needs the role {least}; eve has"):
            call(*ARGUMENTS.get(verb, ("w",)), **KEYWORDS.get(verb, {}))
    assert not list(tmp_path.rglob("*.db"))


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "admin.clean": (),
    "admin.new_token": (),
    "admin.set_limit": ("tag", 1),
    "admin.back_up": (Path("copy.db"),),
    "audits.run": (None,),
    "models.push": (Path("models"),),
    "models.run": (Path("models"),),
    "runs.skip": ("w", "a"),
    "runs.work": (),
    "workflows.activate": ("w", "1"),
    "workflows.push_file": (Path("w.yaml"),),
    "workflows.set_breakpoint": ("w", "a"),
    "workflows.clear_breakpoint": ("w", "a"),
}
KEYWORDS: dict[str, dict[str, Any]] = {
    "captures.capture": {"consumer": "c"},
    "captures.resolve": {"is_written": True},
    "checkpoints.set": {"consumer": "c", "to": "latest"},
    "tables.sql": {"limit": 1, "say": print},
}


# What each changing verb writes.


@dataclass
class Desk:
    """A place with a lake, somebody at work in it, and what was recorded since they last looked."""

    place: Place
    seen: int = 0

    @property
    def operations(self) -> Operations:
        return self.place.operations

    def news(self) -> list[RecordedChange]:
        """Oldest first."""
        found = [each for each in self.operations.admin.history(limit=1000) if each.id > self.seen]
        self.seen = max([self.seen, *(each.id for each in found)])
        return found[::-1]

    def append(self, *ids: int) -> None:
        catalog = self.operations._context.lake.catalog("lake").pyiceberg
        rows = pa.table({"id": list(ids)})
        catalog.create_namespace_if_not_exists("db")
        if not catalog.table_exists("db.plays"):
            catalog.create_table("db.plays", rows.schema)
        catalog.load_table("db.plays").append(rows)

    def captured(self) -> str:
        self.append(1)
        return str(self.operations.captures.capture("db.plays", consumer="c").id)

    def committed(self) -> str:
        made = self.captured()
        self.operations.captures.commit(made)
        return made

    def in_doubt(self) -> str:
        """A capture with a statement of which nobody knows whether it was executed."""
        made = self.captured()
        with self.operations.store.database.writing() as connection:
            connection.exec_driver_sql(
                "INSERT INTO work_units (id, digest, captures, workflow_id, step_id, inputs, state, template, begun_by,"
                f" created_at, visited, owner, outputs) VALUES ('u', 'u', '[\"{made}\"]', 'w', 's', '[]', 'open', 't',"
                " 'w/1', 1800000000000000, '[]', 'o', '{}')"
            )
            connection.exec_driver_sql(f"INSERT INTO work_unit_captures (capture_id, unit_id) VALUES ('{made}', 'u')")
            connection.exec_driver_sql(
                "INSERT INTO work_statements (unit_id, number, text, state, doubt)"
                " VALUES ('u', 1, 'INSERT INTO lake.db.t SELECT 1', 'begun', 'it cannot be told')"
            )
        return made

    def halted(self) -> str:
        """A run that waits at a breakpoint."""
        self.operations.workflows.set_breakpoint("w", "a")
        run = self.place.start("w")
        return run.id

    def ended(self) -> str:
        return self.place.run("w").id

    def expired(self) -> None:
        """A run that ended long ago."""
        self.ended()
        self.ended()
        settings = replace(self.operations.settings, keep_runs_days=1, keep_runs_least=1)
        clock = self.operations.clock
        self.place.operations = Operations(
            self.operations.store, settings, admin(), clock=lambda: clock() + timedelta(days=30)
        )


@pytest.fixture
def desk(place: Place) -> Desk:
    place.push("w", noop("a"))
    return Desk(place)


def undropped(desk: Desk) -> str:
    """A capture that was committed, and whose change table could not be dropped at once."""
    made = desk.captured()
    desk.operations.store.commit(made, by="ada", now=desk.operations.clock())
    return made


#: verb → what is made ready for it, the verb itself, and the subject that is recorded; {} is what was made ready.
CASES: dict[str, tuple[Callable[[Desk], Any], Callable[[Operations, Any], object], str]] = {
    "workflows.push": (lambda _: None, lambda o, _: o.workflows.push(workflow("new")), "new"),
    "workflows.push_file": (
        lambda desk: written(desk.place.folder / "w.json", workflow("filed")),
        lambda o, file: o.workflows.push_file(file),
        "filed",
    ),
    "workflows.adopt": (
        lambda desk: desk.append(1),
        lambda o, _: o.workflows.adopt(ProofRequest("SELECT id FROM lake.db.plays", "lake.db.copies")),
        "db.copies",
    ),
    "workflows.activate": (
        lambda desk: desk.operations.workflows.deactivate("w"),
        lambda o, _: o.workflows.activate("w", "1", reason="again"),
        "w",
    ),
    "workflows.deactivate": (lambda _: None, lambda o, _: o.workflows.deactivate("w", reason="broken"), "w"),
    "workflows.delete": (lambda _: None, lambda o, _: o.workflows.delete("w", reason="old"), "w"),
    "workflows.set_breakpoint": (lambda _: None, lambda o, _: o.workflows.set_breakpoint("w", "a"), "w a"),
    "workflows.clear_breakpoint": (
        lambda desk: desk.operations.workflows.set_breakpoint("w", "a"),
        lambda o, _: o.workflows.clear_breakpoint("w", "a"),
        "w a",
    ),
    "runs.start": (lambda _: None, lambda o, _: o.runs.start("w", {"x": "confidential"}), "w/1"),
    "runs.stop": (Desk.halted, lambda o, run: o.runs.stop(run, reason="late"), "w/1"),
    "runs.kill": (Desk.halted, lambda o, run: o.runs.kill(run, step="a", reason="bad"), "w/1 a"),
    "runs.skip": (Desk.halted, lambda o, run: o.runs.skip(run, "a"), "w/1 a"),
    "runs.pause": (Desk.halted, lambda o, run: o.runs.pause(run), "w/1"),
    "runs.resume": (Desk.halted, lambda o, run: o.runs.resume(run, "a"), "w/1 a"),
    "runs.restart": (Desk.ended, lambda o, run: o.runs.restart(run, restart=beginning(), reason="once more"), "w/1"),
    "signals.announce": (lambda _: None, lambda o, _: o.signals.announce("news", {"day": 1}), "news"),
    "captures.capture": (
        lambda desk: desk.append(1),
        lambda o, _: o.captures.capture("db.plays", consumer="c"),
        "",
    ),
    "captures.commit": (Desk.captured, lambda o, made: o.captures.commit(made), "{}"),
    "captures.abandon": (Desk.captured, lambda o, made: o.captures.abandon(made, reason="no"), "{}"),
    "captures.drop": (undropped, lambda o, made: o.captures.drop(made), "{}"),
    "captures.resolve": (Desk.in_doubt, lambda o, made: o.captures.resolve(made, is_written=True), "{}"),
    "captures.undo": (Desk.in_doubt, lambda o, made: o.captures.undo(made, leave_rows=True), "{}"),
    "templates.push": (lambda _: None, lambda o, _: o.templates.push(TEMPLATE), "Greet v1"),
    "templates.delete": (
        lambda desk: desk.operations.templates.push(TEMPLATE),
        lambda o, _: o.templates.delete("Greet"),
        "Greet",
    ),
    "checkpoints.set": (
        lambda desk: desk.append(1),
        lambda o, _: o.checkpoints.set("db.plays", consumer="c", to="latest", reason="new here"),
        "c",
    ),
    "admin.set_limit": (lambda _: None, lambda o, _: o.admin.set_limit("scarce", 2), "scarce"),
    "admin.clear_limit": (
        lambda desk: desk.operations.admin.set_limit("scarce", 2),
        lambda o, _: o.admin.clear_limit("scarce"),
        "scarce",
    ),
    "admin.new_token": (lambda _: None, lambda o, _: o.admin.new_token(), "server"),
    "admin.clean": (Desk.expired, lambda o, _: o.admin.clean(), "store"),
}
#: Needs a target that a Spark step has written; see tests/acceptance/test_rebuild.py.
ELSEWHERE = {"checkpoints.rebuild"}


def workflow(workflow_id: str) -> str:
    return json.dumps({"workflow": {"id": workflow_id, "steps": [noop("a")]}})


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def beginning() -> Any:
    from dalsegno.model.runs import RestartFrom

    return RestartFrom.BEGINNING


def test_every_changing_verb_is_tried() -> None:
    assert {*CASES, *ELSEWHERE} == set(LEAST_ROLE)


@pytest.mark.parametrize("verb", CASES)
def test_a_change_writes_one_row(desk: Desk, verb: str) -> None:
    prepare, call, subject = CASES[verb]
    made = prepare(desk)
    desk.news()
    call(desk.operations, made)
    [row] = desk.news()
    expected = "workflows.push" if verb == "workflows.push_file" else verb
    assert (row.verb, row.caller, list(row.roles)) == (expected, "ada", ["admin"])
    assert row.subject == subject.format(made) if subject else row.subject
    assert row.before != row.after
    assert "confidential" not in str(row)


@pytest.mark.parametrize("verb", [verb for verb in CASES if verb not in {"runs.start", "signals.announce"}])
def test_what_changes_nothing_writes_nothing(desk: Desk, verb: str) -> None:
    """Done twice, a verb is refused or does nothing; what can be done twice says so twice."""
    prepare, call, _ = CASES[verb]
    made = prepare(desk)
    call(desk.operations, made)
    desk.news()
    try:
        call(desk.operations, made)
    except (Conflict, UnknownName, UserError):
        assert not desk.news()
        return
    repeatable = {"templates.push", "admin.new_token", "checkpoints.set", "captures.undo"}
    assert len(desk.news()) == (verb in repeatable)


# Attacks.


def test_a_transaction_that_fails_records_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does the next one record what the first was about."""
    desk.news()
    with monkeypatch.context() as patched:
        patched.setattr("dalsegno.store.runs.touch_open_runs", _fail)
        with pytest.raises(RuntimeError):
            desk.operations.workflows.set_breakpoint("w", "a")
    assert desk.news() == []
    assert not desk.operations.workflows.breakpoints("w")
    desk.operations.workflows.set_breakpoint("w", "a")
    assert [each.subject for each in desk.news()] == ["w a"]


def _fail(*_: object) -> None:
    raise RuntimeError("in the middle of it")


def test_no_row_without_its_change(desk: Desk) -> None:
    """The log itself cannot be written: then nothing is changed."""
    with desk.operations.store.database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE audit_log RENAME TO elsewhere")
    with pytest.raises(Exception, match="audit_log"):
        desk.operations.admin.set_limit("scarce", 2)
    assert not desk.operations.admin.limits()


def test_what_the_engine_does_by_itself_is_nobodys_change(desk: Desk) -> None:
    run = desk.place.start("w")
    desk.news()
    desk.place.finish(run)
    assert desk.news() == []
    assert audit_log.current() is None


def test_a_run_says_who_ended_it_and_why(either_place: Place) -> None:
    either_place.push("w", noop("a"))
    desk = Desk(either_place)
    run = desk.halted()
    ended = desk.place.operations.runs.kill(run, reason="wrong day")
    assert (ended.status, ended.ended_by, ended.reason) == (FAILED, "ada", "killed by ada: wrong day")
    again = desk.operations.runs.restart(run)
    assert (again.ended_by, again.reason) == (None, None)
    ended = desk.operations.runs.stop(run)
    assert (ended.status, ended.ended_by, ended.reason) == (STOPPED, "ada", "stopped by ada")
    with pytest.raises(Conflict, match="has ended: it is STOPPED"):
        desk.operations.runs.stop(run)


def test_a_run_that_waits_says_who_ended_it(place: Place) -> None:
    place.push("w", shell("a", "sleep 60"), properties={"run_strategy": {"rule": "SEQUENTIAL"}})
    place.start("w")
    waiting = place.start("w")
    ended = place.operations.runs.stop(waiting.id, reason="not needed")
    assert ended.reason == "stopped by ada: not needed (ended before it began)"
    assert place.operations.runs.kill("w/1").status is FAILED


def test_a_restart_of_an_open_run_conflicts(desk: Desk) -> None:
    with pytest.raises(Conflict, match="only a run that has ended can be restarted"):
        desk.operations.runs.restart(desk.halted())


def test_a_key_that_was_used_conflicts(desk: Desk) -> None:
    desk.operations.runs.start("w", {"x": 1}, idempotency_key="k")
    with pytest.raises(Conflict, match="was used"):
        desk.operations.runs.start("w", {"x": 2}, idempotency_key="k")
    assert [each.verb for each in desk.news() if each.subject_kind == "run"] == ["runs.start"]


@pytest.mark.parametrize("reason", ["a\x00b", "half \ud800", "x" * 1001])
def test_a_reason_that_cannot_be_stored_is_refused(desk: Desk, reason: str) -> None:
    run = desk.halted()
    with pytest.raises(UserError, match="reason cannot be recorded"):
        desk.operations.runs.kill(run, reason=reason)
    assert not desk.operations.runs.get(run).status.is_final


def test_odd_names_are_found_again(desk: Desk) -> None:
    for tag in ("it's", 'a"b', "%", "_", "käse 🧀", "w"):
        desk.operations.admin.set_limit(tag, 1)
        assert [each.subject for each in desk.operations.admin.history(tag) if each.subject_kind == "limit"] == [tag]
    assert [each.subject for each in desk.operations.admin.history("%", by="ada")] == ["%"]
    assert not desk.operations.admin.history(by="a%")


def test_the_history_of_a_workflow_has_its_runs_but_not_those_of_others(either_place: Place) -> None:
    either_place.push("w", noop("a"))
    desk = Desk(either_place)
    desk.place.push("w2", noop("a"))
    desk.place.start("w")
    desk.place.start("w2")
    assert {each.subject for each in desk.operations.admin.history("w")} == {"w", "w/1"}


# Pages.


def test_pages_have_every_item_once_while_others_are_added(either_place: Place) -> None:
    either_place.push("w", noop("a"))
    desk = Desk(either_place)
    for _ in range(5):
        desk.place.run("w")
    expected = [run.id for run in desk.operations.runs.list("w")]
    found, cursor = [], None
    while True:
        page = desk.operations.runs.list("w", limit=2, cursor=cursor)
        found += [run.id for run in page]
        desk.place.run("w")
        if (cursor := page.next_cursor) is None:
            break
    assert found == expected


def test_pages_of_changes_and_signals(either_place: Place) -> None:
    desk = Desk(either_place)
    for number in range(5):
        desk.operations.signals.announce("s", {"n": number})
    first = desk.operations.signals.list(limit=2)
    second = desk.operations.signals.list(limit=3, cursor=first.next_cursor)
    assert [each.params["n"] for each in (*first, *second)] == [4, 3, 2, 1, 0]
    assert second.next_cursor is None
    changes = desk.operations.admin.history(limit=4)
    rest = desk.operations.admin.history(limit=100, cursor=changes.next_cursor)
    ids = [each.id for each in (*changes, *rest)]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == len(ids)


def test_pages_of_captures_and_moves(either_place: Place) -> None:
    desk = Desk(either_place)
    made = [desk.committed() for _ in range(3)]
    first = desk.operations.captures.list(limit=2)
    second = desk.operations.captures.list(limit=2, cursor=first.next_cursor)
    assert [each.id for each in (*first, *second)] == made[::-1]
    moves = desk.operations.checkpoints.history("c", "db.plays", limit=1)
    more = desk.operations.checkpoints.history("c", "db.plays", limit=9, cursor=moves.next_cursor)
    assert [each.capture_id for each in (*moves, *more)] == made[::-1]


def test_pages_of_short_lists(desk: Desk) -> None:
    for tag in ("b", "a", "B", "é", "a b"):
        desk.operations.admin.set_limit(tag, 1)
    found, cursor = [], None
    while True:
        page = desk.operations.admin.limits(limit=2, cursor=cursor)
        found += [each.tag for each in page]
        if (cursor := page.next_cursor) is None:
            break
    assert found == ["B", "a", "a b", "b", "é"]


@pytest.mark.parametrize("cursor", ["", "x", "é", "cnVucyBub3doZXJl", "c2lnbmFscyA1", "c2lnbmFscyB4", "=" * 9])
def test_a_cursor_of_something_else_is_refused(desk: Desk, cursor: str) -> None:
    with pytest.raises(UserError, match="does not belong to this list"):
        desk.operations.runs.list(cursor=cursor)
    if cursor != "c2lnbmFscyA1":
        with pytest.raises(UserError, match="does not belong to this list"):
            desk.operations.signals.list(cursor=cursor)


def test_a_log_is_a_stream(place: Place) -> None:
    place.push("w", shell("a", "printf 'one\\ntwo'"))
    assert place.run("w").status is SUCCEEDED
    assert b"".join(place.operations.runs.log("w", "a")) == b"one\ntwo"
    assert place.operations.runs.log("w", "a", follow=True).text() == "one\ntwo"
