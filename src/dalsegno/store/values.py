"""What both databases can hold in a column of text or numbers, or can look up.

Callers check what people give them; here nothing else gets past. Columns of JSON hold anything, as escapes: values that
were found in tables are not for us to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.errors import UserError
from dalsegno.model.stored_text import LARGEST_LONG, SMALLEST_LONG, fault_of_text


def refuse_unstorable(
    connection: object, cursor: object, statement: str, parameters: Any, context: object, is_many: bool
) -> None:
    """Called by SQLAlchemy before each statement."""
    for row in parameters if is_many else (parameters,):
        for value in _values(row):
            if isinstance(value, str):
                if fault := fault_of_text(value):
                    raise UserError(f"{value[:80]!r} cannot be stored or looked up: it holds {fault}.")
            elif isinstance(value, int) and not SMALLEST_LONG <= value <= LARGEST_LONG:
                raise UserError("A whole number of more than 64 bits cannot be stored or looked up.")


def _values(row: Any) -> Iterable[Any]:
    return row.values() if isinstance(row, Mapping) else row or ()
