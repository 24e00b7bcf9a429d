"""The rows that a query returned: as text for the log, and as values that other steps can be given."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dalsegno.errors import UserError
from dalsegno.model.stored_text import fault_of_texts

if TYPE_CHECKING:
    import pyarrow as pa

#: So many rows are shown.
SHOWN = 20
#: So many are fetched: beyond them it is only known that there are more.
FETCHED = 1000
_WIDEST_CELL = 60


def described(rows: pa.Table) -> str:
    """A table of the first rows, and how many there are."""
    count = rows.num_rows
    total = f"more than {FETCHED:,} rows" if count > FETCHED else f"{count:,} row{'s' * (count != 1)}"
    if not rows.num_columns:
        return ""
    if not count:
        return total
    shown = f"{total}; the first {SHOWN}:" if count > SHOWN else f"{total}:"
    cells = [[str(name), *map(cell, column.slice(0, SHOWN).to_pylist())] for name, column in _columns(rows)]
    return f"{shown}\n{_aligned(cells)}"


def outputs(rows: pa.Table) -> dict[str, Any]:
    """``row_count``, if it is known, and the columns of a single row whose names can be those of parameters."""
    if not rows.num_columns or rows.num_rows > FETCHED:
        return {}
    values: dict[str, Any] = {}
    if rows.num_rows == 1:
        row = {name: column[0].as_py() for name, column in _columns(rows)}
        values = {name: plain_value(value) for name, value in row.items() if value is not None and _is_name(name)}
    for name, value in values.items():
        if fault := fault_of_texts(value):
            raise UserError(
                f"The column {name!r} of the query's row holds {fault}, which no parameter can hold.",
                hint=f"Leave the column out, or write it as hex({name}).",
            )
    return values | {"row_count": rows.num_rows}


def _columns(rows: pa.Table) -> list[tuple[str, Any]]:
    return list(zip(rows.column_names, rows.columns, strict=True))


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[a-zA-Z_]\w*", name, re.ASCII) is not None


def plain_value(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [plain_value(item) for item in value]
        case dict():
            return {str(key): plain_value(item) for key, item in value.items()}
        case bytes():
            return value.hex()
    return str(value)


def cell(value: Any) -> str:
    """A value as one short line."""
    text = "NULL" if value is None else str(plain_value(value)).replace("\n", "\\n")
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 1] + "…"


def _aligned(columns: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in columns]
    lines = [" | ".join(map(str.ljust, line, widths)).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:]])
