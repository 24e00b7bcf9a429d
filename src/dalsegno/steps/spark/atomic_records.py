"""What is recorded of an atomic step, so that whoever comes next knows whether it was published, and what it returned.

Behind captures, its work unit says so: which branch, from which state of the target, and, before the main branch is
moved, to which snapshot, and what the step returns. A step behind no capture keeps that in the attempt's folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dalsegno.errors import UserError
from dalsegno.iceberg import evidence, publishing
from dalsegno.iceberg.catalogs import LoadedTable, open_catalog
from dalsegno.iceberg.evidence import Unclear, Written
from dalsegno.iceberg.stamps import PREFIX
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement, StatementState, TableState, UnitState
from dalsegno.plan.unfinished_work import in_doubt
from dalsegno.spark import atomic_scripts
from dalsegno.spark.forms import form_of
from dalsegno.steps.contract import Work
from dalsegno.steps.spark import executors
from dalsegno.steps.spark.work import Say, SqlWork

#: A file in the attempt's folder.
_PREPARED = "spark-atomic"


def settle(work: Work, tracked: SqlWork, say: Say, *, is_idempotent: bool) -> None:
    """If work was begun on a branch: find out whether it was published, and remove the branch."""
    unit, log = tracked.unit, work.log_of_work
    begun = [each for each in unit.statements if each.target and each.before]
    if unit.branch is None or log is None or not begun:
        return
    name, before = TableName.of_quoted(begun[0].target or ""), begun[0].before or TableState()
    head = _head(begun)
    catalog = open_catalog(work.settings.catalog(name.catalog))
    try:
        table = catalog.load(name) if catalog.has(name) else None
        if unit.state is UnitState.OPEN:
            found = publishing.verdict(table.metadata if table else None, before, head)
            if isinstance(found, Unclear) and not is_idempotent:
                raise _in_doubt(tracked, name, found)
            if isinstance(found, Written) or (table is not None and AtomicRecord(work, tracked).is_published(table)):
                say(f"It was published before, to {name}.")
                done = [replace(each, state=StatementState.DONE, done_at=log.now()) for each in begun]
                tracked.unit = log.change(unit, *done, state=UnitState.DONE)
            else:
                # The head stays recorded: what was sent to the catalog may still arrive there.
                planned = [replace(each, state=StatementState.PLANNED) for each in begun]
                tracked.unit = log.change(unit, *planned, branch=None)
        if table is not None:
            publishing.remove_branches(catalog, name, unit.id)
    finally:
        catalog.close()


def _head(statements: Sequence[Statement]) -> int | None:
    """The snapshot that the newest try has published, or has tried to."""
    return next((each.after for each in reversed(statements) if each.after is not None), None)


def _in_doubt(tracked: SqlWork, name: TableName, found: Unclear) -> UserError:
    unit, capture_id = tracked.unit, tracked.unit.key.captures[0]
    return UserError(
        f"It is unknown whether {unit.name}, which is atomic, has published what it wrote to {name}: {found.because}.",
        hint="Look at the table.",
        actions=in_doubt(capture_id, unit.key.step_id),
    )


class AtomicRecord:
    """The record of one attempt; ``tracked`` is its work unit, if it is behind captures."""

    def __init__(self, work: Work, tracked: SqlWork | None) -> None:
        self._work = work
        self._tracked = tracked
        self._log = work.log_of_work
        #: The heads that tries have published, or have tried to.
        self._heads = {head for head in (self._kept().get("head"), _head(self._written())) if head is not None}

    @property
    def id(self) -> str:
        """What the branches are named after."""
        return self._tracked.unit.id if self._tracked else self._work.key

    def is_ours(self, summary: Mapping[str, str]) -> bool:
        """Whether a snapshot was made by this work, in whatever attempt that can be."""
        if self._tracked is not None:
            return summary.get(evidence.UNIT) == self._tracked.unit.id
        return summary.get(f"{PREFIX}attempt") == self._work.key

    def is_published(self, table: LoadedTable) -> bool:
        """Whether an earlier try was published, of which nobody knew so far."""
        return publishing.is_published(table, self.id, self._heads, self.is_ours)

    def begin(self, name: TableName, branch: str, before: TableState) -> None:
        if self._tracked is None or self._log is None:
            return
        begun = [
            replace(
                each,
                state=StatementState.BEGUN,
                target=name.quoted,
                before=before,
                executor=executors.executor_of(self._work),
                begun_at=self._log.now(),
            )
            for each in self._tracked.unit.statements
            if atomic_scripts.writes(form_of(each.text))
        ]
        self._tracked.unit = self._log.change(self._tracked.unit, *begun, branch=branch)

    def prepare(self, made: Mapping[int, int], outputs: Mapping[str, Any]) -> None:
        """Before the main branch is moved: whoever finds it moved must know the rest. ``made``: which snapshots."""
        head = made[max(made)] if made else None
        if head is not None:
            self._heads.add(head)
        if self._tracked is None or self._log is None:
            kept = {"head": head, "outputs": dict(outputs)}
            (self._work.folder / _PREPARED).write_text(json.dumps(kept))
            return
        written = [replace(each, after=made.get(each.number)) for each in self._written()]
        self._tracked.unit = self._log.change(self._tracked.unit, *written, outputs=dict(outputs))

    def outputs(self) -> Mapping[str, Any]:
        """What was prepared."""
        found: Mapping[str, Any] = self._tracked.unit.outputs if self._tracked else self._kept().get("outputs", {})
        return found

    def _kept(self) -> dict[str, Any]:
        with suppress(FileNotFoundError):
            kept: dict[str, Any] = json.loads((self._work.folder / _PREPARED).read_bytes())
            return kept
        return {}

    def end(self, outputs: Mapping[str, Any]) -> None:
        """All of it is in the main branch."""
        if self._tracked is None or self._log is None:
            return
        now = self._log.now()
        done = [replace(each, state=StatementState.DONE, done_at=now) for each in self._written()]
        self._tracked.unit = self._log.change(self._tracked.unit, *done, state=UnitState.DONE, outputs=dict(outputs))

    def forget(self) -> None:
        """Nothing of it is, or will be, in the main branch."""
        if self._tracked is None or self._log is None:
            return
        planned = [replace(each, state=StatementState.PLANNED) for each in self._written()]
        self._tracked.unit = self._log.change(self._tracked.unit, *planned, branch=None)

    def _written(self) -> list[Statement]:
        return [each for each in self._tracked.unit.statements if each.target] if self._tracked else []
