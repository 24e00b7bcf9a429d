"""The columns that identify a row: the same for all tables of a capture, or others for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from dalsegno.errors import UserError
from dalsegno.model.tables import TableName

#: Columns of every table, or columns by table. Among columns, ``table:column`` is one of a table's own.
Keys = Sequence[str] | Mapping[str, Sequence[str] | str]


def keys_by_table(
    keys: Keys, tables: Sequence[TableName], name_of: Callable[[str], TableName]
) -> tuple[tuple[str, ...], dict[TableName, tuple[str, ...]]]:
    """The columns of every table, and those of tables that have their own."""
    if isinstance(keys, Mapping):
        given = [(table, (of,) if isinstance(of, str) else tuple(of)) for table, of in keys.items()]
        return (), {_table(text, tables, name_of): columns for text, columns in given}
    shared, own = [], dict[TableName, tuple[str, ...]]()
    for key in keys:
        text, colon, column = key.rpartition(":")
        # A column may have a colon in its name, but hardly a table's name before it.
        if colon and column and ("." in text or any(table.name == text for table in tables)):
            table = _table(text, tables, name_of)
            own[table] = (*own.get(table, ()), column)
        else:
            shared.append(key)
    return tuple(shared), own


def _table(text: str, tables: Sequence[TableName], name_of: Callable[[str], TableName]) -> TableName:
    """The table that is meant: by its name, or by the last word of it if that is one table's alone."""
    alike = [table for table in tables if table.name == text]
    found = alike[0] if len(alike) == 1 else name_of(text)
    if found not in tables:
        known = [str(table) for table in tables]
        close = get_close_matches(str(found), known, n=1)
        raise UserError(
            f"There are keys for {text!r}, which is not captured; the tables are {', '.join(known)}.",
            hint=f"Did you mean {close[0]!r}?" if close else "Name one of them.",
        )
    return found
