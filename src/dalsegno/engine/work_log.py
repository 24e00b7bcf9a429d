"""The record of what a step does behind its captures, as the step's runner sees it: one transaction for each call.

Whoever asks for the same work finds the same record. A process that lost the step to another one is refused at its next
call, by the word that each leaves in the record.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from dalsegno.clock import utc_now
from dalsegno.engine.captures import Consumed, hold, is_held, refuse_settled
from dalsegno.engine.ports import Versions
from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.params import ParamDefinition, ParamDefinitions
from dalsegno.model.refreshes import Refresh
from dalsegno.model.work_units import Statement, StatementState, UnitState, WorkUnit
from dalsegno.model.workflow import SubworkflowStep
from dalsegno.plan import unfinished_work
from dalsegno.plan.full_refresh import refuse_second
from dalsegno.spark.operations import TakenOver
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.templates import template_digest
from dalsegno.store import Store, capture_queries, flows, refreshes, run_queries, work_units
from dalsegno.store.database import lock


@dataclass
class WorkLog:
    """The unit of one step, for one attempt in one process."""

    store: Store
    consumed: Consumed
    #: The flow that the step is in.
    flow_id: str
    #: Those of the step, with what its job template and its run bring along.
    definitions: ParamDefinitions
    versions: Versions
    expressions: Expressions

    def __post_init__(self) -> None:
        self._owner = f"{self.flow_id} {self.consumed.levels[0].step_id} {secrets.token_hex(8)}"
        self._is_stored = False

    def template(self, *written: Any) -> str:
        """A digest of what the author wrote: these texts or definitions, and what they refer to."""
        layers = [self.definitions, *(each for level in self.consumed.levels for each in level.definitions)]
        return template_digest(written, layers, self.expressions)

    def block(self, name: str) -> ParamDefinition | None:
        """A parameter of the step as it is written."""
        return self.definitions.get(name)

    def unit_id(self) -> str:
        """The id of the unit; another one after an undo, so that what was undone does not count as written."""
        with self.store.database.reading() as connection:
            known = work_units.find(connection, self.consumed.key)
            return known.id if known is not None else work_units.next_id(connection, self.consumed.key)

    def known_steps(self) -> unfinished_work.KnownSteps:
        """Every step of the workflows that the running version has, as far as that is written."""
        found: set[tuple[str, str]] = set()
        waiting = [level.blueprint for level in reversed(self.consumed.levels)]
        seen: set[str] = set()
        is_complete = True
        while waiting:
            blueprint = waiting.pop(0)
            if blueprint.workflow.id in seen:
                continue
            seen.add(blueprint.workflow.id)
            found |= {(blueprint.workflow.id, step_id) for step_id in blueprint.steps}
            for step in blueprint.steps.values():
                if not isinstance(step, SubworkflowStep):
                    continue
                named = step.params.get("subworkflow_id")
                value = named.value if named is not None and named.expression is None else None
                if not isinstance(value, str) or "$" in value:
                    is_complete = False
                elif value not in seen:
                    try:
                        waiting.append(self.versions.named(value, "active"))
                    except UserError:
                        # It is not there: a step that calls it says so.
                        continue
        return unfinished_work.KnownSteps(frozenset(found), is_complete)

    @property
    def workflow_version(self) -> int:
        """The version that the step belongs to."""
        return int(self.consumed.levels[0].run["version"])

    def open(self, template: str, texts: Sequence[str], decision: Mapping[str, Any] | None = None) -> WorkUnit:
        """The unit; one that is there is this process's from now on, a new one is stored with its first statement."""
        key, root_run = self.consumed.key, self.consumed.root_run
        with self.store.database.reading() as connection:
            known = work_units.find(connection, key)
            if known is None:
                self._refuse(connection, is_new=True)
                unit_id = work_units.next_id(connection, key)
                return replace(self._new_unit(template, texts), id=unit_id, decision=decision)
        with self.store.database.writing() as connection:
            self._refuse(connection, is_new=False)
            unit = work_units.find(connection, key)
            if unit is None or unit.state is UnitState.UNDOING:
                raise UserError(
                    f"The work of {known.name} is being undone.",
                    actions=[action("Finish that, then restart", Verb.UNDO, capture=key.captures[0])],
                )
            self._refuse_other_worker(connection, unit)
            visited = unit.visited | {root_run}
            work_units.change(connection, unit.id, visited=sorted(visited), owner=self._owner)
            self._is_stored = True
            return replace(unit, visited=visited, owner=self._owner)

    def _refuse(self, connection: Connection, *, is_new: bool) -> None:
        """Raise unless the captures are this run's, and no other work behind them is left behind."""
        key = self.consumed.key
        if is_held(self.consumed):
            refuse_settled(connection, self.consumed)
        else:
            hold(connection, self.consumed)
        others = [each for each in work_units.behind(connection, key.captures) if each.key != key]
        if not others:
            return
        known = self.known_steps()
        if left := unfinished_work.left_behind(others, key, self.consumed.root_run, known, is_new=is_new):
            raise unfinished_work.refusal(left.unit, is_final=left.is_final)

    def _refuse_other_worker(self, connection: Connection, unit: WorkUnit) -> None:
        """Raise if another step of the same tree is at the same work, as two calls at once of one workflow are."""
        flow_id, _, rest = unit.owner.partition(" ")
        step_id = rest.rpartition(" ")[0]
        if not step_id or flow_id == self.flow_id:
            return
        row = run_queries.step_row(connection, flow_id, step_id)
        if row is not None and flows.state_of(row).is_claimed:
            raise PlatformError(f"Another call of the same workflow is at the work of {unit.name}.")

    def note_job(self, kind: str) -> None:
        """Remember that a job of another kind was begun: what it writes, its targets alone know."""
        begun = Statement(1, kind, StatementState.BEGUN, begun_at=self.now())
        with self.store.database.writing() as connection:
            known = work_units.find(connection, self.consumed.key)
            self._refuse(connection, is_new=known is None)
            if known is not None and known.is_sql and known.is_begun:
                raise unfinished_work.refusal(known, is_final=True)
            if known is None:
                unit_id = work_units.next_id(connection, self.consumed.key)
                work_units.add(connection, replace(self._new_unit("", ()), id=unit_id, statements=(begun,)))

    def plan(
        self, unit: WorkUnit, template: str, texts: Sequence[str], decision: Mapping[str, Any] | None = None
    ) -> WorkUnit:
        """Say anew what a unit executes of which nothing is done."""
        statements = tuple(Statement(number, text) for number, text in enumerate(texts, start=1))
        with self._changing(unit) as connection:
            work_units.plan(connection, unit.id, statements)
            work_units.change(connection, unit.id, template=template, state=UnitState.OPEN.value, decision=decision)
        return replace(unit, template=template, state=UnitState.OPEN, statements=statements, decision=decision)

    def start_over(self, unit: WorkUnit) -> WorkUnit:
        """Plan all of a unit anew, under another id: what it has written until now must not be taken for done."""
        planned = tuple(Statement(each.number, each.text) for each in unit.statements)
        with self._changing(unit) as connection:
            work_units.change(connection, unit.id, state=UnitState.UNDONE.value)
            anew = replace(unit, id=work_units.next_id(connection, unit.key), state=UnitState.OPEN, statements=planned)
            work_units.add(connection, anew)
        return anew

    def change(self, unit: WorkUnit, *statements: Statement, refresh: Refresh | None = None, **values: Any) -> WorkUnit:
        """Store statements as they are now, values of the unit itself, and what it did, all at once."""
        with self._changing(unit) as connection:
            for each in statements:
                changed = {
                    "state": each.state.value,
                    "target": each.target,
                    "before": each.before and each.before.as_json(),
                    "after": each.after,
                    "executor": each.executor and dict(each.executor),
                    "variables": each.variables and dict(each.variables),
                    "doubt": each.doubt,
                    "begun_at": each.begun_at,
                    "done_at": each.done_at,
                }
                work_units.change_statement(connection, unit.id, each.number, **changed)
            if values:
                work_units.change(connection, unit.id, **_stored(values))
            if refresh is not None:
                refreshes.add(connection, refresh)
        by_number = {each.number: each for each in statements}
        return replace(unit, statements=tuple(by_number.get(each.number, each) for each in unit.statements), **values)

    def units(self) -> list[WorkUnit]:
        """All work behind the same captures that was not undone, the step's own included."""
        with self.store.database.reading() as connection:
            return work_units.behind(connection, self.consumed.key.captures)

    def known_units(self) -> frozenset[str]:
        """The ids of all units behind the same captures, those that were undone included."""
        with self.store.database.reading() as connection:
            found = work_units.ids_behind(connection, self.consumed.key.captures)
            return frozenset(found)

    def known_captures(self, capture_ids: Collection[str]) -> set[str]:
        """Those of these captures that the store knows."""
        with self.store.database.reading() as connection:
            return {each.id for each in capture_queries.named(connection, capture_ids)}

    def now(self) -> datetime:
        return utc_now()

    @contextmanager
    def _changing(self, unit: WorkUnit) -> Iterator[Connection]:
        with self.store.database.writing() as connection:
            if self._is_stored:
                if not work_units.change(connection, unit.id, if_owner=self._owner, owner=self._owner):
                    raise TakenOver
            else:
                for consumer in sorted({capture.consumer for capture in self.consumed.captures}):
                    lock(connection, consumer)
                self._refuse(connection, is_new=True)
                if work_units.find(connection, unit.key) is not None:
                    raise TakenOver
                refuse_second(unit, work_units.behind(connection, unit.key.captures))
                work_units.add(connection, unit)
            yield connection
        self._is_stored = True

    def _new_unit(self, template: str, texts: Sequence[str]) -> WorkUnit:
        run = self.consumed.levels[-1].run
        return WorkUnit(
            id="",
            key=self.consumed.key,
            state=UnitState.OPEN,
            template=template,
            begun_by=f"{run['workflow_id']}/{run['number']}",
            created_at=self.now(),
            visited=frozenset({self.consumed.root_run}),
            owner=self._owner,
            statements=tuple(Statement(number, text) for number, text in enumerate(texts, start=1)),
        )


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.value if isinstance(value, UnitState) else value for name, value in values.items()}
