"""What a workflow would have made of the whole of its sources: its own SQL over clones, into clones.

Every name in the SQL that means a source or a target is replaced by that of its clone. A statement of which it is
unclear what it writes is not executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import uuid4

from dalsegno.audit.history import Consumed
from dalsegno.audit.oracles import Query, oracles_of, require_same_columns
from dalsegno.audit.steps import Rehearsal, SqlOfStep, capture_steps
from dalsegno.capture.lake import Lake
from dalsegno.capture.scratch import Scratch, is_scratch
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.scopes import Scopes
from dalsegno.errors import DalsegnoError, HistoryLost, PlatformError, UnknownName, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import history_of
from dalsegno.iceberg.layout import Layout
from dalsegno.model.capture_requests import DetailOptions
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.outcomes import FailureKind
from dalsegno.model.snapshots import Snapshot
from dalsegno.model.tables import TableName
from dalsegno.spark.connect import Session
from dalsegno.spark.failures import explained
from dalsegno.spark.rewriting import Effect, Name, Stand, equal_columns, named_in, quoted, renamed, understood
from dalsegno.steps.incremental import outputs_of
from dalsegno.steps.spark import rows as spark_rows
from dalsegno.steps.spark.sessions import opened_for
from dalsegno.store import run_queries


def with_a_query(workflow_id: str) -> Action:
    """What to do where a workflow's own SQL does not say what its target should hold."""
    aim = "Say what the target should hold, here or under 'oracle' in the workflow"
    return action(aim, Verb.AUDIT, workflow=workflow_id, query="SELECT …", target="TABLE")


@dataclass(frozen=True)
class Restriction:
    """Which rows of a source matter for what is looked at: a condition, by the columns it needs."""

    columns: frozenset[str]
    condition: str


@dataclass
class Recomputed:
    """What came out, until ``remove``."""

    #: Target → the table that it should be equal to.
    tables: dict[TableName, TableName] = field(default_factory=dict)
    #: The columns by which a target's rows are merged.
    keys: dict[TableName, tuple[str, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    #: Tables that the SQL names beside sources and targets.
    read_as_they_are: set[str] = field(default_factory=set)
    #: Whether sources were restricted.
    is_restricted: bool = False


@dataclass
class Recomputer:
    """Recomputes what a workflow should have made of its sources, up to any of its runs."""

    lake: Lake
    scopes: Scopes
    blueprint: Blueprint
    timeline: Sequence[Consumed]
    #: Where the workflow began in each source.
    first: Mapping[TableName, CapturedTable]
    #: What a target should hold, said by whoever asks: it stands for all of the workflow's oracles.
    given: Mapping[TableName, Query]
    #: The only target that is looked at.
    wanted: TableName | None
    #: Columns that are not compared.
    left_out: frozenset[str]
    #: What was in a target before the first run.
    seed: Callable[[LoadedTable], Snapshot | None]
    say: Callable[[str], None]
    scratch: Scratch
    _queries: dict[int, Mapping[TableName, Query]] = field(default_factory=dict)

    def targets(self) -> list[TableName]:
        """The tables that the workflow writes to, as far as can be told without executing anything."""
        if self.given:
            return list(self.given)
        written = [understood(text).table for text in self.likely_statements(len(self.timeline) - 1)]
        found = dict.fromkeys(table for name in written if name and (table := self.named_in_full(name)))
        by_sql = [table for table in found if self.lake.catalog(table.catalog).has(table)]
        return list(dict.fromkeys([*by_sql, *self.queries(len(self.timeline) - 1)]))

    def queries(self, index: int) -> Mapping[TableName, Query]:
        """The independent queries that count after a run, by their target."""
        if index not in self._queries:
            found = self.given or oracles_of(self.lake, self.blueprint, self.rehearsal(index, {}))
            self._queries[index] = {
                table: query for table, query in found.items() if self.wanted is None or table == self.wanted
            }
        return self._queries[index]

    def rehearsal(self, index: int, captured: Mapping[str, Mapping[str, Any]]) -> Rehearsal:
        return Rehearsal(self.scopes, self.lake.settings, self.blueprint, self.timeline[index].run, captured)

    def likely_statements(self, index: int) -> list[str]:
        return [statement for sql in self.rehearsal(index, {}).likely_sql() for statement in sql.statements]

    def named_in_full(self, name: Name) -> TableName | None:
        is_full = len(name) > 2 and name[0] in self.lake.settings.catalogs  # noqa: PLR2004 - catalog, namespace, name
        return TableName(name[0], name[1:-1], name[-1]) if is_full else None

    def up_to(self, index: int, restriction: Restriction | None = None) -> Recomputed:
        """What the targets should hold after a run."""
        return _Recomputation(self, index, restriction).done()


class _Recomputation:
    def __init__(self, recomputer: Recomputer, index: int, restriction: Restriction | None) -> None:
        self.all = recomputer
        self.lake, self.scratch = recomputer.lake, recomputer.scratch
        self.consumed, self.index = recomputer.timeline[index], index
        self.restriction = restriction
        self.result = Recomputed()
        #: What stands for each table.
        self.instead: dict[TableName, Stand] = {}
        #: The catalog and the namespace that are meant by names which leave them out.
        self.place: tuple[str, str] = ("", "")
        #: Views of the rows that matter, by name, as SQL; each session needs them.
        self._views: dict[str, str] = {}

    def done(self) -> Recomputed:
        queries = self.all.queries(self.index)
        if self._needs_sql(queries):
            self._from_sql()
        for captured in self.consumed.sources.values() if queries else ():
            if captured.table not in self.instead:
                self._clone(captured)
        for target, query in queries.items():
            self._from_query(target, query)
        return self.result

    def _needs_sql(self, queries: Mapping[TableName, Query]) -> bool:
        """Whether the workflow's SQL writes to a table that is looked at and that has no query."""
        if not queries:
            return True
        if self.all.given or self.all.wanted is not None:
            return False
        others = []
        for statement in self.all.likely_statements(self.index):
            found = understood(statement)
            target = self.all.named_in_full(found.table) if found.table else None
            if target is not None and target in queries and (keys := equal_columns(statement)):
                self.result.keys.setdefault(target, keys)
            elif target is None and found.effect in (Effect.WRITES, Effect.UNCLEAR):
                name = ".".join(found.table) if found.table else f"{' '.join(statement.split()[:2])} …"
                self.result.notes.append(f"What else this may write is not audited, as it has no oracle: {name}.")
            elif target is not None and target not in queries:
                others.append(target)
        return bool(others)

    def _from_sql(self) -> None:
        """What the workflow's own SQL gives."""
        captured = {step_id: self._captured(step_id) for step_id in capture_steps(self.all.blueprint)}
        rehearsal = self.all.rehearsal(self.index, captured)
        for sql in rehearsal.likely_sql():
            for statement in sql.statements:
                self._prepare(statement)
        for sql in rehearsal.sql():
            rehearsal.hand_on(sql.step_id, self._execute(sql))
        left_out = [f"{step_id} ({kind})" for step_id, kind in rehearsal.left_out.items()]
        if not self.result.tables:
            which = f": {', '.join(left_out)} cannot be executed anew" if left_out else ""
            raise UserError(
                f"{self.all.blueprint.workflow.id} has no SQL of Spark that writes to a table{which}.",
                actions=[with_a_query(self.all.blueprint.workflow.id)],
            )
        if left_out:
            self.result.notes.append(f"Not executed anew, so what they write is not audited: {', '.join(left_out)}.")

    # Sources.

    def _captured(self, step_id: str) -> Mapping[str, Any]:
        """Clone what a capture step captured in all runs together; what it would have handed on."""
        tables = self._tables_of(step_id)
        clones = [self._clone(captured) for captured in tables]
        capture = replace(clones[0], tables=tuple(each for clone in clones for each in clone.tables))
        return {**outputs_of(capture, is_resumed=False), "capture_id": self.consumed.captures[-1]}

    def _tables_of(self, step_id: str) -> list[CapturedTable]:
        """The sources of a capture step, as this run or an earlier one captured them last."""
        sources = self.consumed.sources
        for consumed in reversed(self.all.timeline[: self.index + 1]):
            with self.lake.store.database.reading() as connection:
                row = run_queries.step_row(connection, consumed.run["id"], step_id)
            capture_id = ((row and row["params"]) or {}).get("capture_id", {}).get("value")
            if capture_id in consumed.captures:
                return [sources[captured.table] for captured in self.lake.store.capture(capture_id).tables]
        return list(sources.values())

    def _clone(self, captured: CapturedTable) -> Capture:
        self.all.say(f"Reading {captured.table} as of {captured.upto}.")
        first = self.all.first[captured.table]
        began = None if first.is_full or first.after.snapshot_id is None else first.after
        details = captured.details
        options = DetailOptions(tuple(details.get("ranges", ())), partitions=details.get("partitions") is not None)
        table = self.lake.load(captured.table)
        try:
            clone = self.scratch.clone(table, captured.upto, after=began, spec=captured.spec, options=options)
        except HistoryLost as error:
            since = f"began in {captured.table} at {began}, and consumed it" if began else f"consumed {captured.table}"
            raise HistoryLost(
                f"{self.consumed.name} {since} up to {captured.upto}: that can no longer be read. {error.message}",
                actions=[with_a_query(self.all.blueprint.workflow.id)],
            ) from error
        changes = whole = clone.tables[0].change_table
        if began is not None:
            whole = self.scratch.clone(table, captured.upto).tables[0].change_table
        stand = self._restricted(whole, clone.tables[0])
        self.instead[captured.table] = Stand(stand, captured.upto.snapshot_id)
        self.instead[changes] = Stand(stand if changes == whole else self._restricted(changes, clone.tables[0]))
        # Somebody may have written its name into the SQL.
        self.instead[captured.change_table] = self.instead[changes]
        return clone

    def _restricted(self, table: TableName, captured: CapturedTable) -> str:
        """A view of the rows that matter, if the source has the columns to tell; else the table."""
        wanted = self.restriction
        if wanted is None or not wanted.columns <= set(captured.details["columns"]):
            return _sql(table)
        name = next(each for each in _numbered(table.name) if each not in self._views)
        self._views[name] = f"SELECT * FROM {_sql(table)} WHERE {wanted.condition}"
        self.result.is_restricted = True
        return quoted(name)

    # Targets.

    def _prepare(self, statement: str) -> None:
        """Clone the table that a statement writes to, as it was before the first run."""
        written = understood(statement).table
        target = self._table(written) if written else None
        if target is None:
            return
        if target in self.consumed.sources:
            raise UserError(
                f"The workflow writes to {target}, which it captures: that cannot be computed anew.",
                actions=[with_a_query(self.all.blueprint.workflow.id)],
            )
        if keys := equal_columns(statement):
            self.result.keys.setdefault(target, keys)
        if target in self.instead:
            return
        try:
            table = self.lake.load(target)
        except UnknownName:
            # Made and dropped by the workflow itself.
            clone = self.scratch.name(target)
        else:
            clone = self._clone_of_target(table, self.all.seed(table))
            self.result.tables[target] = clone
        self.instead[target] = Stand(_sql(clone))

    def _clone_of_target(self, table: LoadedTable, at: Snapshot | None) -> TableName:
        history = history_of(table.metadata, "main", table=table.name)
        position = replace(history.position(at), schema_id=history.current_schema_id)
        return self.scratch.clone(table, position).tables[0].change_table

    def _table(self, name: Name) -> TableName | None:
        """The table that a name means here, if it is one of a catalog that we know."""
        if found := self.all.named_in_full(name):
            return found
        catalog, namespace = self.place
        if catalog not in self.lake.settings.catalogs:
            return None
        return TableName(catalog, name[:-1] or tuple(namespace.split(".")), name[-1])

    # Statements.

    @contextmanager
    def _session(self, conf: Mapping[str, str]) -> Iterator[Session]:
        """A session of its own for each step, as in a run: what one sets and names is nothing to the next."""
        session = opened_for(self.lake.settings, uuid4().hex, self.all.say)
        try:
            if conf:
                session.configure(conf)
            for name, query in self._views.items():
                ask(session, f"CREATE TEMPORARY VIEW {quoted(name)} AS {query}", 1)
            self._look_around(session)
            yield session
        finally:
            closed(session)

    def _look_around(self, session: Session) -> None:
        [row] = ask(session, "SELECT current_catalog() AS catalog, current_schema() AS namespace", 1).to_pylist()
        self.place = (row["catalog"], row["namespace"])

    def _execute(self, sql: SqlOfStep) -> Mapping[str, Any]:
        outputs: Mapping[str, Any] = {}
        with self._session(sql.conf) as session:
            for number, statement in enumerate(sql.statements, start=1):
                which = f"Statement {number} of {len(sql.statements)} of step {sql.step_id!r}"
                if understood(statement).effect is Effect.MAINTAINS:
                    self.result.notes.append(f"{which} is maintenance, and was left out.")
                    continue
                other = self._elsewhere(which, statement)
                self.all.say(f"Executing {which[0].lower()}{which[1:]}.")
                outputs = spark_rows.outputs(ask(session, other, spark_rows.FETCHED + 1, which, sql.secrets))
                if understood(statement).moves:
                    self._look_around(session)
        return outputs

    def _elsewhere(self, which: str, statement: str) -> str:
        """The statement with clones in the place of sources and targets."""
        self._prepare(statement)
        names = self._names(self.instead)
        self._note_others(statement, names)
        other = renamed(statement, names)
        self._refuse_unclear(which, other)
        return other

    def _note_others(self, statement: str, names: Mapping[Name, Stand]) -> None:
        beside = named_in(statement, self.lake.settings.catalogs) - set(names)
        self.result.read_as_they_are |= {".".join(name) for name in beside if not is_scratch(name[1])}

    def _refuse_unclear(self, which: str, other: str) -> None:
        """Whatever is executed must not write to anything but clones."""
        found = understood(other)
        clones = {stand.name for stand in self.instead.values()}
        if found.effect is Effect.NONE:
            return
        if found.effect is Effect.WRITES and found.table and quoted(*found.table) in clones:
            return
        raise UserError(
            f"{which} is not executed anew: expected a query, or a write to a table of a catalog in the settings, "
            f"found {' '.join(other.split()[:2])} ….",
            actions=[with_a_query(self.all.blueprint.workflow.id)],
        )

    def _from_query(self, target: TableName, query: Query) -> None:
        """What the target would hold if the query's rows were written to it, so that types are its own."""
        table = self.lake.load(target)
        clone = self._clone_of_target(table, None)
        columns = Layout(table.metadata, table.metadata.get("current-schema-id", 0)).top_columns()
        wanted = [name for name in columns if name not in self.all.left_out]
        self.all.say(f"Computing what {target} should hold.")
        with self._session({}) as session:
            stands = self._stands_for(query)
            if query.call is not None:
                query.call(session, lambda name: stands[name].name, self.all.say)
            names = self._names(stands)
            self._note_others(query.text, names)
            other = renamed(query.text, names)
            described = ask(session, f"DESCRIBE QUERY {other}", len(columns) + 1000, query.name, query.secrets)
            given = [row["col_name"] for row in described.to_pylist()]
            require_same_columns(query, target, given, wanted)
            selected = ", ".join(map(quoted, wanted))
            insert = f"INSERT INTO {_sql(clone)} ({selected}) SELECT {selected} FROM (\n{other}\n)"
            ask(session, insert, 1, query.name, query.secrets)
        self.result.tables[target] = clone

    def _stands_for(self, query: Query) -> dict[TableName, Stand]:
        """The sources as the query's own consumer read them."""
        found = {name: self.instead[name] for name in self.consumed.sources}
        for name, captured in self.consumed.by_consumer.get(query.consumer or "", {}).items():
            if captured.upto != self.consumed.sources[name].upto:
                newest = self.instead[name]
                self._clone(captured)
                found[name], self.instead[name] = self.instead[name], newest
        return found

    def _names(self, instead: Mapping[TableName, Stand]) -> dict[Name, Stand]:
        """What stands for each table, by every way to spell its name here."""
        found: dict[Name, Stand] = {}
        for table, stand in instead.items():
            found[(table.catalog, *table.identifier)] = stand
            if table.catalog == self.place[0]:
                found[table.identifier] = stand
                if ".".join(table.namespace) == self.place[1]:
                    found[(table.name,)] = stand
        return found


def ask(session: Session, statement: str, most_rows: int, which: str = "", secrets: Sequence[str] = ()) -> Any:
    """Execute a statement; what Spark says against it is an error of ours."""
    try:
        return session.execute(statement, most_rows)
    except DalsegnoError:
        raise
    except Exception as error:  # noqa: BLE001 - Spark's client raises whatever comes to it
        failure = explained(error)
        kind = PlatformError if failure.kind is FailureKind.PLATFORM else UserError
        message = failure.message
        for secret in secrets:
            message = message.replace(secret, "***")
        raise kind(f"{which or 'Spark'}: {message}", hint=failure.hint) from None if secrets else error


def closed(session: Session) -> None:
    """End the session with all that runs in it, whatever state it is in."""
    try:
        session.interrupt()
        session.release()
    except Exception:  # noqa: BLE001 - it is over, and the server forgets sessions in time
        session.disconnect()


def _sql(table: TableName) -> str:
    return quoted(table.catalog, *table.identifier)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
