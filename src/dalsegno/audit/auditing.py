"""An audit: does a target hold what its workflow should have made of the very snapshots that its runs consumed?

The workflow's own SQL over the whole source in one go must give what all of its incremental runs together gave. If it
does not, the states that the runs left in the target are compared one by one, by halves, each with what should have
been made of what that run had consumed: the first that differs is the run that went wrong, or somebody else's write.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from uuid import uuid4

from dalsegno.audit.comparison import (
    Ask,
    Comparison,
    Pair,
    Partition,
    PartitionField,
    compare,
    field_types,
    predicate,
)
from dalsegno.audit.history import Line, State, consumed_by, first_captures, line_of
from dalsegno.audit.oracles import given_query
from dalsegno.audit.recomputation import (
    Recomputed,
    Recomputer,
    Restriction,
    ask,
    closed,
    with_a_query,
)
from dalsegno.audit.results import CANNOT_SEE, Audit, AuditRequest, Basis, Culprit, Source, TargetResult
from dalsegno.capture.lake import Lake
from dalsegno.capture.scratch import Scratch
from dalsegno.clock import from_millis
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.scopes import Scopes
from dalsegno.errors import HistoryLost, UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN, history_of
from dalsegno.iceberg.layout import Layout
from dalsegno.model.captures import CapturedTable
from dalsegno.model.tables import TableName
from dalsegno.spark.rewriting import quoted
from dalsegno.steps.spark.sessions import opened_for

_MOST_PARTITIONS = 1_000_000


def audit(lake: Lake, scopes: Scopes, blueprint: Blueprint, request: AuditRequest, say: Callable[[str], None]) -> Audit:
    """Recompute and compare. Nothing but clones is written, and they are removed in any case."""
    scratch = Scratch(lake.context)
    try:
        found = _Audit(lake, scopes, blueprint, request, say, scratch).done()
    finally:
        left_over = scratch.remove()
    return replace(found, left_over=left_over)


class _Audit:
    def __init__(
        self,
        lake: Lake,
        scopes: Scopes,
        blueprint: Blueprint,
        request: AuditRequest,
        say: Callable[[str], None],
        scratch: Scratch,
    ) -> None:
        self.lake, self.blueprint, self.request, self.say = lake, blueprint, request, say
        self.timeline = consumed_by(lake.store, request.workflow_id)
        self.lines: dict[TableName, Line] = {}
        self.recomputer = Recomputer(
            lake,
            scopes,
            blueprint,
            self.timeline,
            first_captures(lake.store, request.workflow_id),
            given_query(lake, request),
            lake.name(request.target) if request.target else None,
            frozenset(request.left_out),
            lambda table: self.line(table).seed,
            say,
            scratch,
        )
        self._computed: dict[tuple[int, Restriction | None], Recomputed] = {}

    def done(self) -> Audit:
        targets = self._targets()
        with self._asking() as ask_spark:
            results = [_TargetAudit(self, self.lake.load(name), ask_spark).done() for name in targets]
        consumed = self.timeline[-1]
        return Audit(
            self.request.workflow_id,
            self.blueprint.version,
            consumed.name,
            len(self.timeline),
            all(result.is_equal for result in results),
            tuple(Source(name, _id(captured.upto.snapshot_id)) for name, captured in consumed.sources.items()),
            tuple(results),
            tuple(self._notes(targets)),
            CANNOT_SEE if any(result.basis is Basis.WORKFLOW_SQL for result in results) else None,
        )

    def line(self, table: LoadedTable) -> Line:
        """The states of a target."""
        if table.name not in self.lines:
            history = history_of(table.metadata, MAIN, table=table.name)
            self.lines[table.name] = line_of(history, self.request.workflow_id, self.timeline)
        return self.lines[table.name]

    def computed(self, index: int, restriction: Restriction | None) -> Recomputed:
        """What the targets should hold after a run."""
        key = (index, restriction)
        if key not in self._computed:
            self._computed[key] = self.recomputer.up_to(index, restriction)
        return self._computed[key]

    @cached_property
    def readable(self) -> frozenset[int]:
        """The runs whose source snapshots are still there."""
        sources = {name: self.lake.load(name) for name in self.timeline[-1].sources}
        known = {name: history_of(table.metadata, MAIN, table=name) for name, table in sources.items()}
        return frozenset(
            index
            for index, consumed in enumerate(self.timeline)
            if all(
                captured.upto.snapshot_id in (None, *known[name].snapshots)
                and captured.upto.table_uuid == known[name].table_uuid
                for name, captured in consumed.sources.items()
            )
        )

    def _targets(self) -> list[TableName]:
        wanted = self.recomputer.wanted
        is_narrowed = self.request.sample is not None or bool(self.request.partitions)
        # What is to be restricted must be known before it is computed.
        known = self.recomputer.targets() if is_narrowed else list(self.computed(len(self.timeline) - 1, None).tables)
        if wanted is not None and wanted not in known:
            names = ", ".join(map(str, known)) or "no table"
            raise UserError(
                f"{self.request.workflow_id} writes to {names}, not to {wanted}.",
                actions=[with_a_query(self.request.workflow_id)],
            )
        return known if wanted is None else [wanted]

    @contextmanager
    def _asking(self) -> Iterator[Ask]:
        session = opened_for(self.lake.settings, uuid4().hex, self.say)
        try:
            yield partial(ask, session)
        finally:
            closed(session)

    def _notes(self, targets: Sequence[TableName]) -> Iterator[str]:
        last = self.timeline[-1]
        yield from dict.fromkeys(note for computed in self._computed.values() for note in computed.notes)
        if as_they_are := sorted({name for computed in self._computed.values() for name in computed.read_as_they_are}):
            yield f"Read as they are now, because the workflow does not capture them: {', '.join(as_they_are)}."
        if last.run["version"] != self.blueprint.version:
            versions = last.run["version"], self.blueprint.version
            yield f"{last.name} was a run of version {versions[0]}; what counts is what version {versions[1]} gives."
        queries = self.recomputer.queries(len(self.timeline) - 1)
        if queries and (later := [name for name, each in self.recomputer.first.items() if _began_later(each)]):
            names = ", ".join(map(str, later))
            yield f"The query reads the whole of {names}, where the workflow began later than at the beginning."
        for target in targets:
            line = self.lines.get(target) if target not in queries else None
            if line and line.seed:
                yield f"What was in {target} before the first run is not audited: snapshot {line.seed.id}."
            elif line and not line.has_beginning:
                yield f"What was in {target} before the first run has expired; it is taken to have been empty."


class _TargetAudit:
    """One target of an audit."""

    def __init__(self, whole: _Audit, table: LoadedTable, ask_spark: Ask) -> None:
        self.whole, self.request, self.table, self.ask = whole, whole.request, table, ask_spark
        self.line = whole.line(table)
        if not self.line.states:
            raise HistoryLost(
                f"All snapshots of {table.name} that runs of {self.request.workflow_id} left have expired."
            )
        self.layout = Layout(table.metadata, table.metadata.get("current-schema-id", 0))
        for name in self.request.left_out:
            if name not in self.layout.top_columns():
                columns = ", ".join(self.layout.top_columns())
                raise UnknownName(f"{table.name} has no column {name!r} to leave out; it has {columns}.")
        self.fields = self._fields()
        self.types = field_types(self.ask, self.fields, self._relation(self.line.states[-1]))
        self.only = self._chosen()
        self.restriction = self._restriction()

    def done(self) -> TargetResult:
        state = self.line.states[-1]
        self.whole.say(f"Comparing {self.table.name}.")
        comparison = self._compared(state, with_rows=True)
        last = len(self.whole.timeline) - 1
        query = self.whole.recomputer.queries(last).get(self.table.name)
        others = [each.snapshot for each in self.line.states if each.is_foreign and each.after == last]
        return TargetResult(
            self.table.name,
            _id(state.snapshot.id if state.snapshot else None),
            comparison,
            query.basis if query else Basis.WORKFLOW_SQL,
            query.written if query else None,
            self._keys(state),
            None if self.only is None else tuple(self._values(partition) for partition in self.only),
            tuple(str(snapshot.id) for snapshot in others if snapshot),
            None if comparison.is_equal else self._culprit(),
            self.whole.lake.store.strategies_taken(self.table.name, self.request.workflow_id),
        )

    # What is compared.

    def _compared(self, state: State, *, with_rows: bool) -> Comparison:
        computed = self.whole.computed(state.after, self.restriction)
        found = compare(self.ask, self._pair(state, computed), with_rows=with_rows)
        if found.is_equal or not computed.is_restricted:
            return found
        # Rows of other partitions may have had a part in it: only the whole source tells.
        self.restriction = None
        return self._compared(state, with_rows=with_rows)

    def _pair(self, state: State, computed: Recomputed) -> Pair:
        if self.table.name not in computed.tables:
            raise UserError(f"The workflow does not write to {self.table.name} for {self.whole.timeline[-1].name}.")
        expected = computed.tables[self.table.name]
        return Pair(
            _sql(expected),
            self._relation(state) if state.snapshot else f"(SELECT * FROM {_sql(expected)} WHERE false)",
            self.fields,
            self.only,
            self.request.left_out,
            self._keys(state),
            self.request.limit,
            self.types,
        )

    def _relation(self, state: State) -> str:
        # Under a name of its own: columns may be called as the table is.
        at = f" VERSION AS OF {state.snapshot.id}" if state.snapshot else ""
        return f"(SELECT * FROM {_sql(self.table.name)}{at})"

    def _keys(self, state: State) -> tuple[str, ...]:
        if self.request.keys:
            for key in self.request.keys:
                self.layout.column(key)
            return tuple(self.request.keys)
        named = [self.layout.column_name(each) for each in self.layout.schema.identifier_field_ids]
        return tuple(named) or self.whole.computed(state.after, self.restriction).keys.get(self.table.name, ())

    # Partitions.

    def _fields(self) -> tuple[PartitionField, ...]:
        spec = self.layout.specs[self.table.metadata.get("default-spec-id", 0)]
        found = [
            PartitionField(item.name, name.partition(".")[0], _expression(self.table.name, item.transform, name))
            for item in spec
            if not item.is_void and (name := self.layout.column_name(item.source_id))
        ]
        if not self.request.partitions:
            return tuple(found)
        known = {each.name: each for each in found}
        names = list(_parts(self.request.partitions[0]))
        return tuple(
            known.get(name) or PartitionField(name, name, quoted(self.layout.column(name).name)) for name in names
        )

    def _chosen(self) -> tuple[Partition, ...] | None:
        if self.request.partitions:
            said = [_parts(each) for each in self.request.partitions]
            names = [each.name for each in self.fields]
            if any(list(each) != names for each in said):
                raise UserError(f"All partitions must name the same columns: expected {'=…/'.join(names)}=….")
            return tuple(tuple(each.values()) for each in said)
        if self.request.sample is None:
            return None
        if not self.fields:
            raise UserError(
                f"{self.table.name} has no partitions of which to take a sample.",
                actions=[
                    action(
                        "Choose rows by a column",
                        Verb.AUDIT,
                        workflow=self.request.workflow_id,
                        partition="COLUMN=VALUE",
                    )
                ],
            )
        selected = ", ".join(f"CAST({each.expression} AS STRING) AS p{at}" for at, each in enumerate(self.fields))
        relations = [self._relation(self.line.states[-1]), *self._sources_with_columns()]
        query = " UNION ".join(f"SELECT {selected} FROM {relation}" for relation in relations)
        rows = self.ask(query, _MOST_PARTITIONS).to_pylist()
        every = sorted((tuple(row[f"p{at}"] for at in range(len(self.fields))) for row in rows), key=str)
        chosen = random.Random(self.request.seed).sample(every, min(self.request.sample, len(every)))  # noqa: S311
        return tuple(sorted(chosen, key=str))

    def _sources_with_columns(self) -> Iterator[str]:
        """The sources that have what the target is partitioned by: there may be partitions that the target lacks."""
        for name, captured in self.whole.timeline[-1].sources.items():
            if {each.column for each in self.fields} <= set(captured.details["columns"]):
                yield f"(SELECT * FROM {_sql(name)} VERSION AS OF {captured.upto.snapshot_id})"

    def _restriction(self) -> Restriction | None:
        if self.only is None:
            return None
        columns = frozenset(each.column for each in self.fields)
        return Restriction(columns, predicate(self.fields, self.types, self.only))

    def _values(self, partition: Partition) -> dict[str, str | None]:
        return dict(zip((each.name for each in self.fields), partition, strict=True))

    # Who did it.

    def _culprit(self) -> Culprit:
        """The first state that is wrong, found by halves: what was wrong once stays wrong, or is none of today's."""
        *earlier, last = self.line.states
        states = [*(state for state in earlier if state.after in self.whole.readable), last]
        good, wrong = -1, len(states) - 1
        while wrong - good > 1:
            middle = (good + wrong) // 2
            state = states[middle]
            self.whole.say(f"Looking for the first run that went wrong: {self.whole.timeline[state.after].name}.")
            if self._compared(state, with_rows=False).is_equal:
                good = middle
            else:
                wrong = middle
        state = states[wrong]
        consumed = self.whole.timeline[state.after]
        snapshot = state.snapshot
        is_first = state.after == 0 and not state.is_foreign and self.line.has_beginning
        return Culprit(
            consumed.name,
            consumed.run["version"],
            not state.is_foreign,
            _id(snapshot.id if snapshot else None),
            snapshot.operation.value if snapshot and snapshot.operation else None,
            from_millis(snapshot.timestamp_ms).isoformat() if snapshot else None,
            self.whole.timeline[states[good].after].name if good >= 0 else None,
            is_certain=good >= 0 or is_first,
        )


def _began_later(first: CapturedTable) -> bool:
    return not first.is_full and first.after.snapshot_id is not None


def _parts(partition: str) -> dict[str, str]:
    """``day=2026-01-01/region=eu``."""
    found = dict(re.findall(r"([^/=]+)=(.*?)(?=/[^/=]+=|\Z)", partition, re.DOTALL))
    if not found:
        raise UserError(f"{partition!r} is not a partition: expected COLUMN=VALUE, or several with / between them.")
    return found


def _expression(table: TableName, transform: str, column: str) -> str:
    """A partition's value as SQL; Iceberg has its transforms as functions in every catalog."""
    source = quoted(*column.split("."))
    if transform == "identity":
        return source
    name, _, width = transform.rstrip("]").partition("[")
    function = quoted(table.catalog, "system", name if width else f"{name}s")
    return f"{function}({width}, {source})" if width else f"{function}({source})"


def _sql(table: TableName) -> str:
    return quoted(table.catalog, *table.identifier)


def _id(snapshot_id: int | None) -> str | None:
    # As text: many readers of JSON keep 53 bits of a number.
    return None if snapshot_id is None else str(snapshot_id)
