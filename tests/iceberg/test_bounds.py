"""Captures that are bounded: however a history is cut, they deliver the rows that one capture would."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Changes, Lake
from dalsegno.model.captures import Role
from tests.iceberg.support import sqlite_settings

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.open(sqlite_settings(tmp_path, "lake")) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        for name in ("a", "b"):
            opened.catalog("lake").pyiceberg.create_table(f"db.{name}", SCHEMA)
        yield opened


def source(lake: Lake, name: str = "a") -> Any:
    return lake.catalog("lake").pyiceberg.load_table(f"db.{name}")


def append(lake: Lake, *ids: int, name: str = "a") -> None:
    source(lake, name).append(pa.table({"id": ids, "name": [f"name {each}" * each for each in ids]}, schema=SCHEMA))


def ids(lake: Lake, table: tuple[str, ...]) -> Counter[int]:
    found = lake.catalog("lake").pyiceberg.load_table(table).scan(selected_fields=("id",)).to_arrow()
    return Counter(found["id"].to_pylist())


def delivered(lake: Lake, changes: Changes) -> dict[str, Counter[int]]:
    """The rows of each source: those that came, less those that went."""
    found = {}
    for captured in changes.tables.values():
        rows = ids(lake, captured.tables[Role.AFTER].identifier)
        if Role.BEFORE in captured.tables:
            rows.subtract(ids(lake, captured.tables[Role.BEFORE].identifier))
        found[captured.table.name] = rows
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["added", "before_after"])
def test_the_same_rows_in_portions(lake: Lake, kind: str, seed: int) -> None:
    chance = random.Random(f"{kind} {seed}")
    for number in range(8):
        if kind == "before_after" and number > 2 and chance.random() < 0.4:
            source(lake).delete(f"id == {chance.choice([*ids(lake, ('db', 'a'))])}")
        name = "a" if number < 2 else chance.choice("aab")
        append(lake, *range(10 * number, 10 * number + chance.randrange(2, 10)), name=name)
    total: dict[str, Counter[int]] = {"a": Counter(), "b": Counter()}
    for _ in range(30):
        most, size = chance.choice([None, 1, 2, 3]), chance.choice([None, 1, 3_000, 10_000])
        planned = lake.plan("db.a", "db.b", consumer="c", changes=kind, max_snapshots=most, max_bytes=size)
        changes = lake.capture("db.a", "db.b", consumer="c", changes=kind, max_snapshots=most, max_bytes=size)
        if not changes:
            break
        for plan, (table, captured) in zip(planned, changes.tables.items(), strict=True):
            assert plan.has_more == captured.details["has_more"]
            assert plan.upto == (captured.upto if captured.upto.snapshot_id else None)
            count = captured.details["captured_snapshots"]
            assert count <= (most or count)
            if kind == "added" and size is not None and count > 1:
                assert captured.details["bytes"] <= size
            total[table.name].update(delivered(lake, changes)[table.name])
        assert changes.has_more == any(each.details["has_more"] for each in changes.tables.values())
        changes.commit()
    else:
        pytest.fail("bounded captures do not come to an end")
    assert {name: +rows for name, rows in total.items()} == {name: ids(lake, ("db", name)) for name in "ab"}


def test_a_capture_that_is_handed_out_again_keeps_its_end(lake: Lake) -> None:
    append(lake, 1)
    append(lake, 2)
    first = lake.capture("db.a", consumer="c", max_snapshots=1)
    assert first.has_more
    again = lake.capture("db.a", consumer="c", max_snapshots=2)
    assert (again.id, again.is_resumed, again.rows, again.has_more) == (first.id, True, 1, True)
    again.commit()
    last = lake.capture("db.a", consumer="c", max_snapshots=1)
    assert (last.rows, last.has_more) == (1, False)
    # Seen again later, it says what is so then.
    append(lake, 3)
    assert lake.capture("db.a", consumer="c").has_more
