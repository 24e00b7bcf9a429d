"""The process of a SQL step: runs the statements in one transaction, and tells what they gave.

Run as ``python -m dalsegno.steps.sql_job``; the URL, which may hold a password, comes on standard input.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Mapping
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from dalsegno import job
from dalsegno.steps.processes import TEMPORARY_FAILURE, WRONG_CONFIGURATION
from dalsegno.steps.sql_text import statements, with_colons_escaped

#: How many rows of a query are handed on.
ROW_LIMIT = 100
PASSING_SQLITE_CODES = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}
)


def main() -> None:
    order = json.load(sys.stdin)
    try:
        job.output(results_of(order["url"], statements(order["script"]), order["args"]))
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        give_up(WRONG_CONFIGURATION, f"The connection's url cannot be used: {error}")
    except DBAPIError as error:
        give_up(TEMPORARY_FAILURE if may_pass(error) else 1, str(error.orig).strip())
    except SQLAlchemyError as error:
        give_up(1, str(error).partition("\n(Background")[0])


def results_of(url: str, script: list[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """How many rows the statements changed, and the first rows of the last query."""
    changed, results = 0, {}
    with create_engine(url).begin() as connection:
        for number, statement in enumerate(script, 1):
            result = connection.execute(text(with_colons_escaped(statement)), arguments)
            if result.returns_rows:
                rows = [plain(row) for row in result.mappings().fetchmany(ROW_LIMIT)]
                results = {"rows": rows, **({"first_row": rows[0]} if rows else {})}
                say(f"statement {number} of {len(script)}: {len(rows)} rows shown")
            else:
                changed += max(0, result.rowcount)
                say(f"statement {number} of {len(script)}: {max(0, result.rowcount)} rows changed")
    return {"row_count": changed, **results}


def may_pass(error: DBAPIError) -> bool:
    """Whether the same may succeed later. SQLite, unlike others, calls errors in a statement operational as well."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in PASSING_SQLITE_CODES
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row as JSON has it: what JSON does not know is written as text, and what is NULL is left out."""
    return {
        str(name): value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in row.items()
        if value is not None
    }


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def give_up(code: int, message: str) -> None:
    say(message)
    sys.exit(code)


if __name__ == "__main__":
    main()
