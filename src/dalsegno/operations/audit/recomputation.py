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

from dalsegno.capture.details import Wish
from dalsegno.capture.lake import Lake
from dalsegno.capture.scratch import Scratch, is_scratch
from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.scopes import Scopes
from dalsegno.errors import DalsegnoError, HistoryLost, PlatformError, UnknownName, UserError
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import history_of
from dalsegno.model.captures import Capture, CapturedTable
from dalsegno.model.outcomes import FailureKind
from dalsegno.model.snapshots import Snapshot
from dalsegno.model.tables import TableName
from dalsegno.operations.audit.history import Consumed
from dalsegno.operations.audit.steps import Rehearsal, SqlOfStep, capture_steps
from dalsegno.spark.connect import Session
from dalsegno.spark.failures import explained
from dalsegno.spark.rewriting import Effect, Name, Stand, equal_columns, named_in, quoted, renamed, understood
from dalsegno.spark.statements import statements
from dalsegno.steps import spark_rows
from dalsegno.steps.incremental import outputs_of
from dalsegno.steps.spark_sessions import opened_for
from dalsegno.store import flows

WITH_A_QUERY = "Say what the target should hold: --query 'SELECT …' --target TABLE"


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
    #: Instead of the workflow's own SQL: what the target should hold.
    query: tuple[str, TableName] | None
    #: What was in a target before the first run.
    seed: Callable[[LoadedTable], Snapshot | None]
    say: Callable[[str], None]
    scratch: Scratch

    def targets(self) -> list[TableName]:
        """The tables that the workflow writes to, as far as can be told without executing anything."""
        if self.query is not None:
            return [self.query[1]]
        settings = self.lake.settings
        rehearsal = Rehearsal(self.scopes, settings, self.blueprint, self.timeline[-1].run, {})
        written = [understood(text).table for sql in rehearsal.likely_sql() for text in sql.statements]
        named = [name for name in written if name and len(name) > 2 and name[0] in settings.catalogs]  # noqa: PLR2004
        found = dict.fromkeys(TableName(name[0], name[1:-1], name[-1]) for name in named)
        return [table for table in found if self.lake.catalog(table.catalog).has(table)]

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
        captured = {step_id: self._captured(step_id) for step_id in self._capture_steps()}
        if self.all.query is not None:
            self._from_query(*self.all.query)
            return self.result
        settings = self.lake.settings
        rehearsal = Rehearsal(self.all.scopes, settings, self.all.blueprint, self.consumed.run, captured)
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
                hint=WITH_A_QUERY,
            )
        if left_out:
            self.result.notes.append(f"Not executed anew, so what they write is not audited: {', '.join(left_out)}.")
        return self.result

    # Sources.

    def _capture_steps(self) -> list[str]:
        return capture_steps(self.all.blueprint) if self.all.query is None else [""]

    def _captured(self, step_id: str) -> Mapping[str, Any]:
        """Clone what a capture step captured in all runs together; what it would have handed on."""
        tables = self._tables_of(step_id)
        clones = [self._clone(captured) for captured in tables]
        capture = replace(clones[0], tables=tuple(each for clone in clones for each in clone.tables))
        return {**outputs_of(capture, is_resumed=False), "capture_id": self.consumed.captures[-1]}

    def _tables_of(self, step_id: str) -> list[CapturedTable]:
        """The sources of a capture step, as this run or an earlier one captured them last."""
        sources = self.consumed.sources
        for consumed in reversed(self.all.timeline[: self.index + 1] if step_id else ()):
            with self.lake.store.database.reading() as connection:
                row = flows.step_row(connection, consumed.run["id"], step_id)
            capture_id = ((row and row["params"]) or {}).get("capture_id", {}).get("value")
            if capture_id in consumed.captures:
                return [sources[captured.table] for captured in self.lake.store.capture(capture_id).tables]
        return list(sources.values())

    def _clone(self, captured: CapturedTable) -> Capture:
        self.all.say(f"Reading {captured.table} as of {captured.upto}.")
        first = self.all.first[captured.table]
        began = None if first.is_full or first.after.snapshot_id is None else first.after
        details = captured.details
        wish = Wish(tuple(details.get("ranges", ())), partitions=details.get("partitions") is not None)
        table = self.lake.load(captured.table)
        try:
            clone = self.scratch.clone(table, captured.upto, after=began, manner=captured.manner, wish=wish)
        except HistoryLost as error:
            since = f"began in {captured.table} at {began}, and consumed it" if began else f"consumed {captured.table}"
            raise HistoryLost(
                f"{self.consumed.name} {since} up to {captured.upto}: that can no longer be read. {error.message}",
                hint=WITH_A_QUERY,
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
                f"The workflow writes to {target}, which it captures: that cannot be computed anew.", hint=WITH_A_QUERY
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
            history = history_of(table.metadata, "main", table=target)
            at = replace(history.position(self.all.seed(table)), schema_id=history.current_schema_id)
            clone = self.scratch.clone(table, at).tables[0].change_table
            self.result.tables[target] = clone
        self.instead[target] = Stand(_sql(clone))

    def _table(self, name: Name) -> TableName | None:
        """The table that a name means here, if it is one of a catalog that we know."""
        catalogs = self.lake.settings.catalogs
        if len(name) > 2 and name[0] in catalogs:  # noqa: PLR2004 - catalog, namespace, name
            return TableName(name[0], name[1:-1], name[-1])
        catalog, namespace = self.place
        if catalog not in catalogs:
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
        names = self._names()
        beside = named_in(statement, self.lake.settings.catalogs) - set(names)
        self.result.read_as_they_are |= {".".join(name) for name in beside if not is_scratch(name[1])}
        other = renamed(statement, names)
        self._refuse_unclear(which, other)
        return other

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
            hint=WITH_A_QUERY,
        )

    def _from_query(self, query: str, target: TableName) -> None:
        other = renamed(query, self._names())
        clone = self.scratch.name(target)
        self.all.say(f"Computing what {target} should hold.")
        with self._session({}) as session:
            ask(session, f"CREATE TABLE {_sql(clone)} USING iceberg AS {other}", 1, "--query")
        self.result.tables[target] = clone

    def _names(self) -> dict[Name, Stand]:
        """What stands for each table, by every way to spell its name here."""
        found: dict[Name, Stand] = {}
        for table, stand in self.instead.items():
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


def checked_query(text: str) -> str:
    """A query and nothing else."""
    found = statements(text)
    if len(found) != 1 or understood(found[0]).effect is not Effect.NONE:
        raise UserError(f"--query is to be one SELECT, found {len(found)} statements: {text[:80]!r}")
    return found[0]


def _sql(table: TableName) -> str:
    return quoted(table.catalog, *table.identifier)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(1))
