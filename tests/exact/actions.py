"""What people do after a run that went wrong, or that went well."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno.capture.lake import Lake
from dalsegno.clock import utc_now
from dalsegno.errors import DalsegnoError
from dalsegno.model.runs import RestartFrom, RunStatus
from dalsegno.operations.run_views import RunView
from dalsegno.store import Store
from tests.exact.faults import Fault, Injection, injected
from tests.exact.forms import Kind
from tests.exact.oracle import Hole
from tests.exact.wrappings import Edit

if TYPE_CHECKING:
    from tests.exact.play import Play

_WAIT = 60.0


@dataclass(frozen=True)
class Action:
    name: str
    do: Callable[[Play, RunView], None]
    is_parallel: bool = False
    #: Whether there must have been a run before, so that targets have something to lose.
    needs_history: bool = False


def _nothing(play: Play, run: RunView) -> None:
    pass


def _restart(play: Play, run: RunView) -> None:
    _restarted(play, run)


def _restart_from_step(play: Play, run: RunView) -> None:
    _restarted(play, run, restart=RestartFrom.STEP, step=play.written.step)


def _restart_from_beginning(play: Play, run: RunView) -> None:
    _restarted(play, run, restart=RestartFrom.BEGINNING)


def _restarted(play: Play, run: RunView, **options: Any) -> None:
    with suppress(DalsegnoError):
        play.look(play.finished(play.place.operations.runs.restart(run.name, **options)))


def _edit(**changes: Any) -> Callable[[Play, RunView], None]:
    """Push another version and run it; half of the time put the old one back after that."""

    def do(play: Play, run: RunView) -> None:
        play.push(Edit(**changes))
        play.look(play.run())
        # An atomic step may not have all of these, and then never runs.
        if play.chance.random() < 0.5 or play.scenario.script.is_atomic:
            play.say("put the old version back")
            play.push()

    return do


def _statement_added(play: Play, run: RunView) -> None:
    """What the new version says besides must be there, too, if it succeeds."""
    [extra, *_] = play.author.tables.values()
    extra = f"{extra}_extra"
    play.place.sql(f"CREATE TABLE {extra} (id BIGINT) USING iceberg")
    play.push(Edit(at_end=(f"INSERT INTO {extra} SELECT id FROM <rows>",)))
    before = play.processed().processed
    again = play.run()
    play.look(again)
    if again.status is RunStatus.SUCCEEDED and not play.pending():
        wanted = (len(play.processed().processed) - len(before)) * len(play.scenario.wrapping.signs)
        [found] = play.place.sql(f"SELECT count(*) AS n FROM {extra}")
        if found["n"] != wanted:
            raise Hole(f"SUCCEEDED, but the statement that was added wrote {found['n']} rows instead of {wanted}")
    play.say("put the old version back")
    play.push()


def _restart_old(play: Play, run: RunView) -> None:
    """Another run does the work; then the old one is restarted."""
    play.end_well()
    for options in ({}, {"restart": RestartFrom.STEP, "step": play.written.step}, {"restart": RestartFrom.BEGINNING}):
        _restarted(play, run, **options)
        if not play.pending():
            play.check()


def _restart_meanwhile(play: Play, run: RunView) -> None:
    """The old run is restarted while a new one executes a statement."""
    reached, go = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go.wait(_WAIT)

    statement = play.chance.randint(1, len(play.scenario.script.statements))
    held = Injection(Fault("held"), play.place.settings, statement, at=hold)
    ended: list[RunView] = []

    def work() -> None:
        try:
            with play.another() as operations:
                ended.append(operations.runs.finish(operations.runs.start(play.written.workflow_id, {}).id))
        finally:
            reached.set()

    thread = threading.Thread(target=work)
    with injected(held):
        thread.start()
        reached.wait(_WAIT)
        try:
            _restarted(play, run)
        finally:
            go.set()
            thread.join(_WAIT)
    for each in ended:
        play.say(f"meanwhile {each.name} is {each.status.value}: {play.place.said(each)}")
        play.look(each)


def _run_twice(play: Play, run: RunView) -> None:
    """Two runs at the same time."""
    ended: list[RunView] = []

    def work() -> None:
        with play.another() as operations:
            ended.append(operations.runs.finish(operations.runs.start(play.written.workflow_id, {}).id))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_WAIT)
    for each in ended:
        play.say(f"{each.name} is {each.status.value}: {play.place.said(each)}")
    for each in ended:
        play.look(each)


def _clean(days: int) -> Callable[[Play, RunView], None]:
    def do(play: Play, run: RunView) -> None:
        settings = play.place.settings
        with Lake(settings, Store.open(settings.store), clock=lambda: utc_now() + timedelta(days=days)) as lake:
            play.say(str(lake.clean()))

    return do


def _command_on_captures(*words: str) -> Callable[[Play, RunView], None]:
    """Type a command for each capture behind which work was begun."""

    def do(play: Play, run: RunView) -> None:
        if not play.is_begun():
            return
        for capture in play.pending():
            done = play.place.command(*words, capture.id)
            play.say(f"dalsegno {' '.join(words)} {capture.id}: {done.code} {done.text}")

    return do


def _abandon_and_restart_old(play: Play, run: RunView) -> None:
    """If it can be abandoned, others process the rows; then the run that had captured them first is restarted."""
    for capture in play.pending():
        done = play.place.command("abandon", capture.id)
        play.say(f"dalsegno abandon {capture.id}: {done.code} {done.text}")
    _restart_old(play, run)


def _set_checkpoint(play: Play, run: RunView) -> None:
    """To where it is."""
    for mark in play.place.operations.store.positions(play.author.consumer):
        done = play.place.command(
            "checkpoints", "set", str(mark.table), "--consumer", play.author.consumer,
            "--to", str(mark.position.snapshot_id),
        )  # fmt: skip
        play.say(f"checkpoint set: {done.code} {done.text}")


def _roll_back(play: Play, run: RunView) -> None:
    """A target, to what it was before the run, unless what it wrote is committed."""
    if not play.is_begun():
        return
    for name, kind in play.targets():
        table = play.tables.load(name)
        branch = "b" if kind is Kind.BRANCH_ROWS else "main"
        before = play.heads[name].get(branch)
        if table is None or before is None or table.metadata.refs[branch].snapshot_id == before:
            continue
        full = play.author.tables[next(key for key, each in play.tables.targets.items() if each[0] == name)]
        if branch == "b":
            play.place.sql(f"ALTER TABLE {full} REPLACE BRANCH b AS OF VERSION {before}")
        else:
            catalog = full.partition(".")[0]
            play.place.sql(f"CALL {catalog}.system.rollback_to_snapshot('{name}', {before})")
        play.say(f"{name} is rolled back to {before}")
        return


def _hide_metadata(play: Play, run: RunView) -> None:
    """A file is missing for a while."""
    name, _ = play.chance.choice(play.targets(made=True) or [("", Kind.ROWS)])
    table = play.tables.load(name) if name else None
    if table is None:
        return
    file = Path(table.metadata_location.removeprefix("file://").removeprefix("file:"))
    away = file.with_suffix(".away")
    file.rename(away)
    try:
        again = play.run()
        if again.status is RunStatus.SUCCEEDED:
            play.say("it succeeded without the metadata")
    finally:
        if not file.exists():
            away.rename(file)
    play.look(again)


def _rename_target(play: Play, run: RunView) -> None:
    targets = play.targets()
    if not targets:
        return
    name, _ = play.chance.choice(targets)
    full = play.author.tables[next(key for key, each in play.tables.targets.items() if each[0] == name)]
    play.place.sql(f"ALTER TABLE {full} RENAME TO {full.partition('.')[2]}_away")
    again = play.run()
    play.place.sql(f"ALTER TABLE {full}_away RENAME TO {full.partition('.')[2]}")
    play.look(again)


def _expire(play: Play, run: RunView) -> None:
    for name, _ in play.targets(made=True):
        full = play.author.tables[next(key for key, each in play.tables.targets.items() if each[0] == name)]
        if play.tables.load(name) is not None:
            catalog = full.partition(".")[0]
            play.place.sql(
                f"CALL {catalog}.system.expire_snapshots(table => '{name}', older_than => now(), retain_last => 1)"
            )


def _write_foreign(play: Play, run: RunView) -> None:
    for name, kind in play.targets(made=True):
        play.tables.write_foreign(name, kind)


def _write_foreign_and_expire(play: Play, run: RunView) -> None:
    _write_foreign(play, run)
    _expire(play, run)


ACTIONS = (
    Action("run again", _nothing),
    Action("restart", _restart),
    Action("restart from the step", _restart_from_step),
    Action("restart from the beginning", _restart_from_beginning),
    Action("line added in front", _edit(in_front=("CREATE TABLE IF NOT EXISTS <namespace>.line_in_front (n BIGINT)",))),
    Action("read added in front", _edit(in_front=("SELECT 1",))),
    Action("statements swapped", _edit(is_swapped=True)),
    Action("wording changed", _edit(wording="/* again */")),
    Action("statement added", _statement_added),
    Action("step renamed", _edit(step="write_anew")),
    Action("workflow renamed", _edit(suffix="_anew")),
    Action("old run restarted", _restart_old),
    Action("restarted while another works", _restart_meanwhile, is_parallel=True),
    Action("two runs at once", _run_twice, is_parallel=True),
    Action("clean", _clean(0)),
    Action("clean after weeks", _clean(30)),
    Action("abandon", _command_on_captures("abandon")),
    Action("abandon, old run restarted", _abandon_and_restart_old),
    Action("commit by hand", _command_on_captures("commit")),
    Action("undo", _command_on_captures("undo")),
    Action("checkpoint set", _set_checkpoint, needs_history=True),
    Action("target rolled back", _roll_back, needs_history=True),
    Action("metadata missing", _hide_metadata),
    Action("target renamed", _rename_target),
    Action("target expired", _expire, needs_history=True),
    Action("others write", _write_foreign),
    Action("others write, target expired", _write_foreign_and_expire, needs_history=True),
)
