"""Session variables of Spark: what a session that resumes a script must be given again."""

from __future__ import annotations

from collections.abc import Sequence

from dalsegno.model.work_units import Statement
from dalsegno.spark.connect import Session

_WITHOUT_LITERAL = ("binary", "array", "map", "struct", "variant")


def values_of(session: Session, names: Sequence[str]) -> dict[str, str] | None:
    """SQL for the values of session variables; None if one has a type that has no literal."""
    found: dict[str, str] = {}
    for name in names:
        quoted = f"`{name.replace('`', '``')}`"
        [kind] = session.execute(f"SELECT typeof({quoted}) AS type", 1)["type"].to_pylist()
        if any(word in kind for word in _WITHOUT_LITERAL):
            return None
        # What the clock shows in a time zone, it may show twice.
        read, made = ("unix_micros({})", "timestamp_micros({})") if kind == "timestamp" else ("{}", "{}")
        asked = f"SELECT hex(CAST({read.format(quoted)} AS STRING)) AS value"
        [value] = session.execute(asked, 1)["value"].to_pylist()
        # In digits, because in a text Spark would find escapes and settings.
        text = "NULL" if value is None else f"decode(unhex('{value}'), 'UTF-8')"
        found[quoted] = made.format(f"CAST({text} AS BIGINT)") if kind == "timestamp" else f"CAST({text} AS {kind})"
    return found


def replayed_variables(statement: Statement) -> list[str]:
    """Statements that give session variables the values that they had, behind the one that set them."""
    return [f"SET VAR {name} = {value}" for name, value in (statement.variables or {}).items()]
