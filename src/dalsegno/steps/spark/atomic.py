"""SQL steps with ``atomic: true``: all of it is published with one move of the target's main branch, or nothing is.

The statements write to, and read from, a branch of their one target (``spark.wap.branch``). Whoever fails or dies
before the move leaves the main branch as it was, and the next attempt starts over on a branch of its own. Whether an
attempt that nobody heard of again has made the move, the main branch says: no single statement has to be looked for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from dalsegno.errors import DataError, PlatformError, UserError
from dalsegno.iceberg import evidence, publishing
from dalsegno.iceberg.catalogs import Catalog, LoadedTable, open_catalog
from dalsegno.iceberg.history import MAIN
from dalsegno.iceberg.publishing import Moved
from dalsegno.model.outcomes import Outcome, Succeeded
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import StatementState
from dalsegno.spark import atomic_scripts
from dalsegno.spark.connect import Session
from dalsegno.spark.forms import form_of
from dalsegno.spark.operations import LostOperation, TakenOver
from dalsegno.steps import stamps
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Work
from dalsegno.steps.spark import rows, scripts, sessions
from dalsegno.steps.spark.atomic_records import AtomicRecord
from dalsegno.steps.spark.atomic_targets import target_of
from dalsegno.steps.spark.params import SparkStep
from dalsegno.steps.spark.scripts import Abandoned
from dalsegno.steps.spark.work import SqlWork

#: How often all of it is executed again because somebody else has committed to the target meanwhile.
REDOS = 3
_STAMP = f"spark.sql.iceberg.snapshot-property.{evidence.ATOMIC}"


class Host(Protocol):
    """The thread that executes an attempt."""

    work: Work
    step: SparkStep
    log: AttemptLog

    def use(self, session: Session) -> None:
        """This session is the one to interrupt, and to end."""

    def at(self, which: str) -> None:
        """This is what it is at."""

    def stopped(self) -> Outcome | None:
        """How it ends because somebody wants it to; ``TakenOver`` if another process goes on with it."""


class _Stopped(Exception):
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


class AtomicScript:
    """All statements of an attempt."""

    def __init__(self, host: Host, statements: Sequence[str], tracked: SqlWork | None) -> None:
        self._host = host
        self._work = host.work
        self._say = host.log.note
        self._statements = tuple(statements)
        self._tracked = tracked
        self._record = AtomicRecord(host.work, tracked)
        self._catalog: Catalog | None = None

    def executed(self) -> Outcome:
        try:
            return Succeeded(self._published())
        except _Stopped as stopped:
            return stopped.outcome
        finally:
            if self._catalog is not None:
                self._catalog.close()

    def _published(self) -> Mapping[str, Any]:
        """Execute and publish all of it, unless that was done; what it returns."""
        if self._tracked is None:
            # An earlier process of this attempt may have published it and died: nothing else would say so.
            name = self._target()
            if self._record.is_published(self._load(name)):
                return self._ended(name, self._record.outputs())
        session = sessions.connected(self._work, self._say)
        self._host.use(session)
        if scripts.joined(session, self._work, self._statements, self._host.step.conf):
            # An earlier process died in the middle, and its session has what a new one must not have.
            if self._tracked is None:
                publishing.remove_branches(self._catalog_of(name), name, self._record.id)
            raise Abandoned
        if self._tracked is not None:
            self._resume(self._tracked, session)
            name = self._target()
        return self._tried_again_and_again(session, name)

    def _resume(self, tracked: SqlWork, session: Session) -> None:
        tracked.resume(session)
        self._statements = tracked.texts
        if any(each.state is not StatementState.PLANNED for each in tracked.unit.statements):
            raise UserError(
                f"The work of {tracked.unit.name} was begun when the step was not atomic.",
                hint="Finish it without 'atomic: true' first: remove that until then.",
            )

    def _tried_again_and_again(self, first: Session, name: TableName) -> Mapping[str, Any]:
        session = first
        try:
            for redo in range(REDOS + 1):
                if redo:
                    self._say(f"Somebody else has committed to {name}: starting over ({redo} of {REDOS} times).")
                    session = self._anew(session, first, redo)
                with suppress(Moved):
                    return self._tried(session, first, name)
        finally:
            if session is not first:
                with suppress(Exception):
                    first.release_own()
        raise PlatformError(
            f"Nothing was published: others committed to {name} each of the {REDOS + 1} times that the step was "
            "executed.",
            hint="See that it runs while nobody else writes to the table, or remove 'atomic: true'.",
        )

    def _anew(self, last: Session, first: Session, redo: int) -> Session:
        """A session without the temporary views, variables and settings of the last try."""
        session = self._new_session(f"redo-{redo}")
        self._host.use(session)
        if last is not first:
            last.release()
        return session

    def _tried(self, session: Session, first: Session, name: TableName) -> Mapping[str, Any]:
        """Execute all statements on a new branch, and publish it."""
        table = self._load(name)
        if self._record.is_published(table):
            return self._ended(name, self._record.outputs())
        catalog = self._catalog_of(name)
        publishing.remove_branches(catalog, name, self._record.id)
        table = self._allowing_branches(self._load(name))
        before = evidence.state_of(table.metadata)
        branch = publishing.new_branch(self._record.id)
        head = before.heads.get(MAIN)
        made: dict[int, int] = {}
        outputs: Mapping[str, Any] = {}
        self._record.begin(name, branch, before)
        try:
            publishing.stage(catalog, table, branch)
            for number, text in enumerate(self._statements, start=1):
                outputs = self._execute(session, number, branch)
                if not atomic_scripts.writes(form_of(text)):
                    continue
                found = publishing.head_of(self._load(name), branch, before, head, self._record.is_published)
                if found is not None and found != head:
                    head = made[number] = found
            self._stop_if_asked()
        except (TakenOver, DataError):
            # What is in the main branch now must be looked at by people: until then it counts as begun.
            raise
        except Exception:
            self._give_up(session, name)
            raise
        self._record.prepare(made, outputs)
        # Whoever has taken the attempt over begins another one.
        first.require_ownership()
        if head is not None and made:
            publishing.publish(catalog, name, before, head)
            self._say(f"Published: snapshot {head} of {name}.")
        return self._ended(name, outputs)

    def _execute(self, session: Session, number: int, branch: str) -> Mapping[str, Any]:
        self._stop_if_asked()
        text = self._statements[number - 1]
        which = f"statement {number} of {len(self._statements)}"
        self._host.at(which)
        self._say(f"{which}:")
        self._host.log.write(text)
        scripts.note_begun(session, self._work, number, self._statements)
        stamp = stamps.stamp(self._work, self._tracked.unit.id if self._tracked else None)
        # All of it each time: a script may reset its settings.
        session.configure(stamp | stamps.statement_stamp(number, text) | {_STAMP: branch, sessions.WAP_BRANCH: branch})
        began = time.perf_counter()
        try:
            found = session.execute(text, rows.FETCHED + 1, f"statement {number}")
        except LostOperation:
            raise Abandoned from None
        self._say(f"{which} took {time.perf_counter() - began:.2f} s")
        if shown := rows.described(found):
            self._host.log.write(shown)
        return rows.outputs(found)

    def _stop_if_asked(self) -> None:
        if (outcome := self._host.stopped()) is not None:
            raise _Stopped(outcome)

    def _ended(self, name: TableName, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        self._record.end(outputs)
        publishing.remove_branches(self._catalog_of(name), name, self._record.id)
        return outputs

    def _give_up(self, session: Session, name: TableName) -> None:
        """Leave nothing of a try that was not published; what cannot be removed now, the next one removes."""
        with suppress(Exception):
            # Who lets go of the step leaves it to another process as it is: this raises then.
            self._host.stopped()
            session.clear()
            publishing.remove_branches(self._catalog_of(name), name, self._record.id)
            self._record.forget()

    def _target(self) -> TableName:
        return target_of(
            self._statements, self._host.step.conf, self._work.settings, lambda: self._new_session("names")
        )

    def _allowing_branches(self, table: LoadedTable) -> LoadedTable:
        if publishing.allows_branches(table.metadata):
            return table
        self._say(f"Setting {publishing.WAP} of {table.name}, so that Spark can write to a branch of it.")
        session = self._new_session("names")
        try:
            session.execute(f"ALTER TABLE {table.name.quoted} SET TBLPROPERTIES ('{publishing.WAP}' = 'true')", 1)
        finally:
            session.release()
        return self._load(table.name)

    def _catalog_of(self, name: TableName) -> Catalog:
        if self._catalog is None:
            self._catalog = open_catalog(self._work.settings.catalog(name.catalog))
        return self._catalog

    def _load(self, name: TableName) -> LoadedTable:
        return self._catalog_of(name).load(name)

    def _new_session(self, what: str) -> Session:
        """A session like the attempt's, which remembers nothing of it."""
        key = f"{self._work.key}/{what}-{time.time_ns()}"
        session = sessions.opened_for(self._work.settings, key, self._say)
        session.configure(sessions.configuration(session, self._work, self._host.step.conf))
        return session
