"""The query tells exactly the rows that two tables do not have in common, and which of them belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.capture.queries import Engine, compared

Row = tuple[int | None, str | None]
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from(["a", "b"])), max_size=8)
#: A name that must be quoted, and quotes in it doubled.
COLUMNS = ("id", 'odd "name"')


def asked(before: Sequence[Row], after: Sequence[Row], keys: Sequence[str]) -> dict[str, Counter[Any]]:
    with duckdb.connect() as connection:
        for name, rows in (("b", before), ("a", after)):
            connection.execute(f'CREATE TABLE {name} (id INTEGER, "odd ""name""" VARCHAR)')
            for row in rows:
                connection.execute(f"INSERT INTO {name} VALUES (?, ?)", row)
        found: dict[str, Counter[Any]] = {}
        for *values, kind in connection.execute(compared(Engine.DUCKDB, "a", "b", COLUMNS, keys)).fetchall():
            found.setdefault(kind, Counter())[tuple(values)] += 1
        return found


@settings(deadline=None)
@given(ROWS, ROWS)
def test_without_keys(before: list[Row], after: list[Row]) -> None:
    added, removed = Counter(after) - Counter(before), Counter(before) - Counter(after)
    expected = {"insert": added, "delete": removed}
    assert asked(before, after, ()) == {kind: rows for kind, rows in expected.items() if rows}


@settings(deadline=None)
@given(ROWS, ROWS)
def test_with_keys(before: list[Row], after: list[Row]) -> None:
    added, removed = Counter(after) - Counter(before), Counter(before) - Counter(after)
    shared = {row[0] for row in added} & {row[0] for row in removed}
    expected = {
        "insert": Counter({row: n for row, n in added.items() if row[0] not in shared}),
        "update_after": Counter({row: n for row, n in added.items() if row[0] in shared}),
        "delete": Counter({row: n for row, n in removed.items() if row[0] not in shared}),
        "update_before": Counter({row: n for row, n in removed.items() if row[0] in shared}),
    }
    assert asked(before, after, ("id",)) == {kind: rows for kind, rows in expected.items() if rows}
