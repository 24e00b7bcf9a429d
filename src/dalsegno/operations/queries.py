"""The query that turns the tables of a capture into rows that say what happened to them.

Nobody should have to write ``EXCEPT ALL`` by hand. The rows of the touched files at the two ends of a range differ by
what changed: in ``after`` but not in ``before`` is new, the reverse is gone, and a row that both have is unchanged, as
often as both have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.model.captures import CapturedTable, ChangeKind, Role
from dalsegno.model.tables import TableName

CHANGE_TYPE = "_change_type"


class Engine(StrEnum):
    """Whose SQL it is."""

    #: Reads tables by their names.
    SPARK = "spark"
    #: Reads tables by their metadata files.
    DUCKDB = "duckdb"


_QUOTES = {Engine.SPARK: "`", Engine.DUCKDB: '"'}


def query_of(captured: CapturedTable, engine: str, metadata_of: Callable[[TableName], str]) -> str:
    """What a captured table is asked for, as a query for an engine; ``metadata_of`` finds a table's metadata file."""
    chosen, manner = _engine(engine), captured.manner
    if chosen is Engine.SPARK:
        sources = {role: _dotted(chosen, name) for role, name in captured.tables.items()}
    else:
        sources = {role: f"iceberg_scan({_text(metadata_of(name))})" for role, name in captured.tables.items()}
    columns = tuple(str(name) for name in captured.details["columns"])
    after, before = sources[Role.AFTER], sources.get(Role.BEFORE)
    since = captured.after.sequence_number
    if manner.is_told_by_one_end:
        if chosen is not Engine.SPARK:
            raise UserError(
                f"The upserts of {captured.table} are told by the ids of rows, which {chosen} does not show.",
                hint="Capture with --changes before_after, or query with Spark.",
            )
        return f"SELECT {_names(chosen, columns)} FROM {after} WHERE _last_updated_sequence_number > {since}"
    if before is None:
        return f"SELECT {_names(chosen, columns)}, 'insert' AS {CHANGE_TYPE} FROM {after}"
    # Not every engine shows the ids of rows; comparing whole rows always works.
    if manner.by_row_id and chosen is Engine.SPARK:
        changes = followed(chosen, after, before, columns, since)
    else:
        changes = compared(chosen, after, before, columns, manner.keys)
    match manner.changes:
        case ChangeKind.UPSERTS:
            return f"SELECT * FROM (\n{changes}\n) WHERE {CHANGE_TYPE} IN ('insert', 'update_after')"
        case ChangeKind.KEYS:
            return f"SELECT DISTINCT {_names(chosen, manner.keys)} FROM (\n{changes}\n)"
        case _:
            return changes


def compared(engine: Engine, after: str, before: str, columns: Sequence[str], keys: Sequence[str]) -> str:
    """Every changed row with its ``_change_type``, found by comparing whole rows.

    Without keys, that is ``insert`` or ``delete``. With keys, a row whose key is on both sides was updated:
    ``update_before`` is how it was, ``update_after`` how it is.
    """
    names = _names(engine, columns)
    sides = f"""WITH added AS (
  SELECT {names} FROM {after} EXCEPT ALL SELECT {names} FROM {before}
), removed AS (
  SELECT {names} FROM {before} EXCEPT ALL SELECT {names} FROM {after}
)"""
    added = _Side("added", "removed", "update_after", "insert")
    removed = _Side("removed", "added", "update_before", "delete")
    return f"{sides}\n{added.typed(engine, columns, keys)}\nUNION ALL\n{removed.typed(engine, columns, keys)}"


def followed(engine: Engine, after: str, before: str, columns: Sequence[str], since: int) -> str:
    """The same on a table of format version 3, where a row keeps its id when it is updated: nothing is compared.

    A row is new or updated if it was last updated after the range began; one that was set to what it was before counts
    as updated.
    """
    names, of_new, of_old = (_names(engine, columns, of) for of in ("", "n", "o"))
    return f"""WITH newer AS (SELECT {names}, _row_id FROM {after} WHERE _last_updated_sequence_number > {since}),
older AS (SELECT {names}, _row_id FROM {before})
SELECT {of_new}, CASE WHEN o._row_id IS NULL THEN 'insert' ELSE 'update_after' END AS {CHANGE_TYPE}
FROM newer n LEFT JOIN older o ON n._row_id = o._row_id
UNION ALL
SELECT {of_old}, 'update_before' AS {CHANGE_TYPE} FROM older o JOIN newer n ON n._row_id = o._row_id
UNION ALL
SELECT {of_old}, 'delete' AS {CHANGE_TYPE}
FROM older o LEFT JOIN (SELECT _row_id FROM {after}) n ON n._row_id = o._row_id WHERE n._row_id IS NULL"""


@dataclass(frozen=True)
class _Side:
    """The rows that one end has and the other has not."""

    name: str
    other: str
    #: What became of a row whose key the other side has as well, and of one whose key it has not.
    paired: str
    alone: str

    def typed(self, engine: Engine, columns: Sequence[str], keys: Sequence[str]) -> str:
        if not keys:
            return f"SELECT {_names(engine, columns)}, '{self.alone}' AS {CHANGE_TYPE} FROM {self.name}"
        same = " AND ".join(f"s.{_quoted(engine, key)} IS NOT DISTINCT FROM o.{_quoted(engine, key)}" for key in keys)
        others = f"SELECT DISTINCT {_names(engine, keys)}, TRUE AS _paired FROM {self.other}"
        kind = f"CASE WHEN o._paired THEN '{self.paired}' ELSE '{self.alone}' END AS {CHANGE_TYPE}"
        return f"SELECT {_names(engine, columns, 's')}, {kind}\nFROM {self.name} s LEFT JOIN ({others}) o ON {same}"


def _engine(name: str) -> Engine:
    try:
        return Engine(name)
    except ValueError:
        raise UserError(f"{name!r} is no engine that queries are written for: expected {', '.join(Engine)}.") from None


def _names(engine: Engine, columns: Sequence[str], of: str = "") -> str:
    return ", ".join(f"{of}{'.' * bool(of)}{_quoted(engine, column)}" for column in columns)


def _dotted(engine: Engine, table: TableName) -> str:
    return ".".join(_quoted(engine, part) for part in (table.catalog, *table.identifier))


def _quoted(engine: Engine, name: str) -> str:
    quote = _QUOTES[engine]
    return quote + name.replace(quote, quote * 2) + quote


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
