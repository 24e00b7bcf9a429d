"""The query that turns the tables of a capture into rows that say what happened to them.

Nobody should have to write ``EXCEPT ALL`` by hand. The rows of the touched files at the two ends of a range differ by
what changed: in ``after`` but not in ``before`` is new, the reverse is gone, and a row that both have is unchanged, as
often as both have it. Counting each row, plus one where it is and minus one where it was, reads either end only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.model.captures import CapturedTable, CaptureSpec, ChangeKind, Role
from dalsegno.model.tables import TableName

CHANGE_TYPE = "_change_type"
#: How every column begins that the query has for itself.
_OWN = "_dalsegno_"
#: Iceberg's own column, which ``*`` does not stand for.
ROW_ID = "_row_id"


class Engine(StrEnum):
    """Whose SQL it is."""

    #: Reads tables by their names.
    SPARK = "spark"
    #: Reads tables by their metadata files.
    DUCKDB = "duckdb"


_READ_IT = "Read the tables of the capture themselves, or rename the column in the source."
_QUOTES = {Engine.SPARK: "`", Engine.DUCKDB: '"'}
#: Each row as often as one end has it more than the other.
_REPEATED = {
    Engine.SPARK: "LATERAL VIEW EXPLODE(SEQUENCE(1, ABS(_dalsegno_more))) AS _dalsegno_time",
    Engine.DUCKDB: "CROSS JOIN UNNEST(RANGE(CAST(ABS(_dalsegno_more) AS BIGINT)))",
}


def query_of(captured: CapturedTable, engine: str, metadata_of: Callable[[TableName], str]) -> str:
    """What a captured table is asked for, as a query for an engine; ``metadata_of`` finds a table's metadata file."""
    chosen, spec = _engine(engine), captured.spec
    if chosen is Engine.SPARK:
        sources = {role: _dotted(chosen, name) for role, name in captured.tables.items()}
    else:
        sources = {role: f"iceberg_scan({_text(metadata_of(name))})" for role, name in captured.tables.items()}
    columns = tuple(str(name) for name in captured.details["columns"])
    if (reason := reserved_column(columns, spec)) is not None:
        raise UserError(f"The changed rows of {captured.table} cannot be queried: {reason}.", hint=_READ_IT)
    if chosen is Engine.DUCKDB and len({name.lower() for name in columns}) < len(columns):
        raise UserError(
            f"Columns of {captured.table} differ only in upper and lower case, which {chosen} does not distinguish.",
            hint="Query with Spark, with spark.sql.caseSensitive = true.",
        )
    after, before = sources[Role.AFTER], sources.get(Role.BEFORE)
    since = captured.after.sequence_number
    if spec.needs_only_after:
        if chosen is not Engine.SPARK:
            raise UserError(
                f"The upserts of {captured.table} are found by row ids, which {chosen} does not show.",
                hint="Query with Spark.",
                actions=[
                    action("Or capture again", Verb.CAPTURE, table=str(captured.table), changes=ChangeKind.BEFORE_AFTER)
                ],
            )
        return f"SELECT {_names(chosen, columns)} FROM {after} WHERE _last_updated_sequence_number > {since}"
    if before is None:
        return f"SELECT {_names(chosen, columns)}, 'insert' AS {CHANGE_TYPE} FROM {after}"
    changes = _changes(chosen, captured, after, before)
    match spec.changes:
        case ChangeKind.UPSERTS:
            return f"SELECT * FROM (\n{changes}\n) WHERE {CHANGE_TYPE} IN ('insert', 'update_after')"
        case ChangeKind.KEYS:
            return f"SELECT DISTINCT {_names(chosen, spec.keys)} FROM (\n{changes}\n)"
        case _:
            return changes


def _only_range(captured: CapturedTable) -> Action:
    return action("To do so", Verb.CAPTURE, table=str(captured.table), changes=ChangeKind.RANGE, partitions=True)


def _changes(engine: Engine, captured: CapturedTable, after: str, before: str) -> str:
    """Every changed row, in the way that the engine and the table allow."""
    spec, columns = captured.spec, captured.details["columns"]
    incomparable = captured.details.get("incomparable", ())
    # Not every engine shows the ids of rows; comparing all of the touched ones always works.
    by_row_id = spec.by_row_id and engine is Engine.SPARK
    if by_row_id:
        after, before = changed_by_id(after, before, captured.after.sequence_number)
    elif incomparable:
        raise UserError(
            f"Column {incomparable[0]!r} of {captured.table} is of a type that cannot be compared, and there are no "
            "row ids to go by instead.",
            hint="Query with Spark, which shows them."
            if spec.by_row_id
            else "Capture only the range and its partitions, and compute those partitions again.",
            actions=[] if spec.by_row_id else [_only_range(captured)],
        )
    identity = spec.keys or ((ROW_ID,) if by_row_id else ())
    if spec.changes is ChangeKind.KEYS:
        # The query does not say then what became of a row, so the other side is not needed.
        identity = ()
    return compared(engine, after, before, columns, identity, cancelling=not incomparable)


def compared(
    engine: Engine, after: str, before: str, columns: Sequence[str], identity: Sequence[str], *, cancelling: bool = True
) -> str:
    """Every changed row with its ``_change_type``, found by comparing whole rows.

    Without an identity, that is ``insert`` or ``delete``. With one, which is the keys or the row's id, a row that is on
    both sides was updated: ``update_before`` is how it was, ``update_after`` how it is. A row that both sides have did
    not change; without ``cancelling``, for what cannot be compared, every row that is given did.
    """
    names = _names(engine, columns)
    told_apart = _names(engine, dict.fromkeys([*columns, *identity]))
    kind = "CASE WHEN _dalsegno_more > 0 THEN 'insert' ELSE 'delete' END"
    moved = ""
    if identity:
        # Twice, because Spark does not find a window that has a name in a view.
        same = f"(PARTITION BY {_names(engine, identity)})"
        kind = f"""CASE
    WHEN _dalsegno_more > 0 AND MIN(_dalsegno_more) OVER {same} < 0 THEN 'update_after'
    WHEN _dalsegno_more > 0 THEN 'insert'
    WHEN MAX(_dalsegno_more) OVER {same} > 0 THEN 'update_before'
    ELSE 'delete'
  END"""
        # Rows that are alike have the same identity: Spark then moves them once, not for each of the two groupings.
        moved = f" DISTRIBUTE BY {_names(engine, identity)}" if engine is Engine.SPARK else ""
    differing = f"SELECT {told_apart}, _dalsegno_end AS _dalsegno_more FROM both_ends"
    if cancelling:
        differing = f"""SELECT {told_apart}, SUM(_dalsegno_end) AS _dalsegno_more FROM (SELECT * FROM both_ends{moved})
  GROUP BY {told_apart} HAVING SUM(_dalsegno_end) <> 0"""
    return f"""WITH both_ends AS (
  SELECT {told_apart}, 1 AS _dalsegno_end FROM {after}
  UNION ALL
  SELECT {told_apart}, -1 AS _dalsegno_end FROM {before}
), differing AS (
  {differing}
), typed AS (
  SELECT {names}, _dalsegno_more, {kind} AS {CHANGE_TYPE} FROM differing
)
SELECT {names}, {CHANGE_TYPE} FROM typed {_REPEATED[engine]}"""


def changed_by_id(after: str, before: str, since: int) -> tuple[str, str]:
    """What remains of both ends without the rows that kept their id and were not updated since: no others can differ.

    Only on a table of format version 3, where an updated row keeps its id and says when that was.
    """
    kept = f"SELECT {ROW_ID} AS _dalsegno_kept FROM {after} WHERE _last_updated_sequence_number <= {since}"
    return (
        f"(SELECT *, {ROW_ID} FROM {after} WHERE _last_updated_sequence_number > {since})",
        f"(SELECT *, {ROW_ID} FROM {before} LEFT ANTI JOIN ({kept}) ON {ROW_ID} = _dalsegno_kept)",
    )


def reserved_column(columns: Sequence[str], spec: CaptureSpec) -> str | None:
    """Which column has a name that the query uses itself, in words; None if none has."""
    if spec.needs_only_after or spec.changes is ChangeKind.RANGE:
        return None
    for name in columns:
        if name.lower() == CHANGE_TYPE or name.lower().startswith(_OWN):
            return f"its column {name!r} has a name that the query uses itself"
    return None


def _engine(name: str) -> Engine:
    try:
        return Engine(name)
    except ValueError:
        raise UserError(f"There are no queries for the engine {name!r}: expected {', '.join(Engine)}.") from None


def _names(engine: Engine, columns: Iterable[str]) -> str:
    return ", ".join(_quoted(engine, column) for column in columns)


def _dotted(engine: Engine, table: TableName) -> str:
    return ".".join(_quoted(engine, part) for part in (table.catalog, *table.identifier))


def _quoted(engine: Engine, name: str) -> str:
    quote = _QUOTES[engine]
    return quote + name.replace(quote, quote * 2) + quote


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
