"""The query that turns the two tables of a capture into rows that say what happened to them.

Nobody should have to write ``EXCEPT ALL`` by hand. The rows of the touched files at the two ends of a range differ by
what changed: in ``after`` but not in ``before`` is new, the reverse is gone, and a row that both have is unchanged, as
often as both have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.model.captures import CapturedTable, ChangeKind, Role
from dalsegno.model.tables import TableName


class Engine(StrEnum):
    """Whose way of quoting names."""

    SPARK = "spark"
    DUCKDB = "duckdb"


_QUOTES = {Engine.SPARK: "`", Engine.DUCKDB: '"'}

CHANGE_TYPE = "_change_type"


def query_of(captured: CapturedTable, engine: str) -> str:
    """What a captured table is asked for, as a query for an engine."""
    chosen, manner = _engine(engine), captured.manner
    columns = [str(name) for name in captured.details["columns"]]
    after = captured.tables[Role.AFTER]
    since = captured.after.sequence_number
    if manner.is_told_by_one_end:
        return _newer_rows(chosen, after, columns, since)
    if Role.BEFORE not in captured.tables:
        return inserts_query(chosen, after, columns)
    before = captured.tables[Role.BEFORE]
    # Not every engine shows the ids of rows; comparing whole rows always works.
    if manner.by_row_id and chosen is Engine.SPARK:
        changes = row_id_query(chosen, after, before, columns, since)
    else:
        changes = changes_query(chosen, after, before, columns, manner.keys)
    match manner.changes:
        case ChangeKind.UPSERTS:
            return f"SELECT * FROM (\n{changes}\n) WHERE {CHANGE_TYPE} IN ('insert', 'update_after')"
        case ChangeKind.KEYS:
            return f"SELECT DISTINCT {_names(chosen, manner.keys)} FROM (\n{changes}\n)"
        case _:
            return changes


def row_id_query(engine: Engine, after: TableName, before: TableName, columns: Sequence[str], since: int) -> str:
    """The same as ``changes_query`` on a table of format version 3, where a row keeps its id when it is updated.

    A row is new or updated if it was last updated after the range began; one that was set to what it was before counts
    as updated.
    """
    names, newer = _names(engine, columns), f"_last_updated_sequence_number > {since}"
    new, old = _source(engine, after), _source(engine, before)
    of_new, of_old = _names(engine, columns, "n"), _names(engine, columns, "o")
    return f"""WITH newer AS (SELECT {names}, _row_id FROM {new} WHERE {newer}),
older AS (SELECT {names}, _row_id FROM {old})
SELECT {of_new}, CASE WHEN o._row_id IS NULL THEN 'insert' ELSE 'update_after' END AS {CHANGE_TYPE}
FROM newer n LEFT JOIN older o ON n._row_id = o._row_id
UNION ALL
SELECT {of_old}, 'update_before' AS {CHANGE_TYPE} FROM older o JOIN newer n ON n._row_id = o._row_id
UNION ALL
SELECT {of_old}, 'delete' AS {CHANGE_TYPE}
FROM older o LEFT JOIN (SELECT _row_id FROM {new}) n ON n._row_id = o._row_id WHERE n._row_id IS NULL"""


def _newer_rows(engine: Engine, after: TableName, columns: Sequence[str], since: int) -> str:
    source = _source(engine, after)
    return f"SELECT {_names(engine, columns)} FROM {source} WHERE _last_updated_sequence_number > {since}"


def _names(engine: Engine, columns: Sequence[str], of: str = "") -> str:
    return ", ".join(f"{of}{'.' * bool(of)}{quoted(engine, column)}" for column in columns)


def changes_query(
    engine: Engine, after: TableName | str, before: TableName | str, columns: Sequence[str], keys: Sequence[str]
) -> str:
    """Every changed row with its ``_change_type``.

    Without keys, that is ``insert`` or ``delete``. With keys, a row whose key is on both sides was updated:
    ``update_before`` is how it was, ``update_after`` how it is.
    """
    names = _names(engine, columns)
    sides = f"""WITH added AS (
  SELECT {names} FROM {_source(engine, after)} EXCEPT ALL SELECT {names} FROM {_source(engine, before)}
), removed AS (
  SELECT {names} FROM {_source(engine, before)} EXCEPT ALL SELECT {names} FROM {_source(engine, after)}
)"""
    if not keys:
        return f"""{sides}
SELECT {names}, 'insert' AS {CHANGE_TYPE} FROM added
UNION ALL
SELECT {names}, 'delete' AS {CHANGE_TYPE} FROM removed"""
    key_names = _names(engine, keys)
    return f"""{sides}
{_typed(engine, columns, keys, "added", "removed", ("update_after", "insert"), key_names)}
UNION ALL
{_typed(engine, columns, keys, "removed", "added", ("update_before", "delete"), key_names)}"""


def inserts_query(engine: Engine, table: TableName, columns: Sequence[str]) -> str:
    """Every row of a change table of added files, in the form of ``changes_query``."""
    names = _names(engine, columns)
    return f"SELECT {names}, 'insert' AS {CHANGE_TYPE} FROM {_source(engine, table)}"


def _engine(name: str) -> Engine:
    try:
        return Engine(name)
    except ValueError:
        raise UserError(f"{name!r} is no engine that queries are written for: expected {', '.join(Engine)}.") from None


def quoted(engine: Engine, name: str) -> str:
    quote = _QUOTES[engine]
    return quote + name.replace(quote, quote * 2) + quote


def _typed(
    engine: Engine,
    columns: Sequence[str],
    keys: Sequence[str],
    side: str,
    other: str,
    types: tuple[str, str],
    key_names: str,
) -> str:
    names = _names(engine, columns, "s")
    same = " AND ".join(f"s.{quoted(engine, key)} IS NOT DISTINCT FROM o.{quoted(engine, key)}" for key in keys)
    paired, alone = types
    return f"""SELECT {names}, CASE WHEN o._paired THEN '{paired}' ELSE '{alone}' END AS {CHANGE_TYPE}
FROM {side} s LEFT JOIN (SELECT DISTINCT {key_names}, TRUE AS _paired FROM {other}) o ON {same}"""


def _source(engine: Engine, table: TableName | str) -> str:
    if isinstance(table, str):
        return table
    return ".".join(quoted(engine, part) for part in (table.catalog, *table.identifier))
