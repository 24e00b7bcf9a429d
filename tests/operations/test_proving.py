"""What a proof replays and makes up, without Spark: clones keep the history of a table, and own none of its files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import DateType, LongType, NestedField

from dalsegno.capture.lake import Lake
from dalsegno.capture.scratch import Scratch, remove_scratch
from dalsegno.iceberg.history import MAIN
from dalsegno.model.tables import TableName
from dalsegno.operations.proving.changes import Maker
from dalsegno.operations.proving.history import past_of
from dalsegno.operations.proving.request import ProofRequest
from dalsegno.rewrite import PartitionField, analyse
from dalsegno.rewrite import Table as Described
from dalsegno.rewrite.stated import stated_facts
from dalsegno.settings import load

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", DateType()))


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    home = tmp_path / ".dalsegno"
    home.mkdir()
    found = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=str(home / "warehouse"))
    found.create_namespace("db")
    yield found
    found.engine.dispose()


@pytest.fixture
def lake(tmp_path: Path, catalog: SqlCatalog) -> Iterator[Lake]:
    with Lake.open(load(working_folder=tmp_path, environment={})) as opened:
        yield opened


def table_of(catalog: SqlCatalog, name: str, commits: int, version: int = 2) -> Table:
    made = catalog.create_table(
        f"db.{name}",
        SCHEMA,
        properties={"format-version": str(version), "write.metadata.delete-after-commit.enabled": "true"},
    )
    for number in range(commits):
        made.append(pa.table({"id": pa.array([number], pa.int64()), "day": [date(2026, 1, 1)]}))
    return made


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["plays", "o'plays ünd"])
def test_a_clone_walks_through_the_history_of_its_table(
    lake: Lake, catalog: SqlCatalog, tmp_path: Path, version: int, name: str
) -> None:
    table_of(catalog, name, 3, version)
    original = lake.load(TableName("lake", ("db",), name))
    before = files_in(tmp_path / ".dalsegno" / "warehouse" / "db")
    line = list(reversed(list(original.history().ancestors(original.history().head))))
    scratch = Scratch(lake.context)
    clone = scratch.clone_with_history(original, line[0])
    empty = scratch.empty_clone(original)
    assert catalog.load_table(empty.identifier).scan().to_arrow().num_rows == 0
    assert lake.load(empty).history().snapshots == {}
    for number, snapshot in enumerate(line, start=1):
        lake.catalog("lake").set_ref(lake.load(clone), MAIN, {"snapshot-id": snapshot.id, "type": "branch"})
        assert catalog.load_table(clone.identifier).scan().to_arrow().num_rows == number
    loaded = lake.load(clone)
    assert loaded.metadata["properties"] == {"gc.enabled": "false"}
    assert loaded.metadata["table-uuid"] != original.metadata["table-uuid"]
    # Writing to it leaves the original alone.
    catalog.load_table(clone.identifier).append(pa.table({"id": pa.array([9], pa.int64()), "day": [date(2026, 1, 2)]}))
    assert files_in(tmp_path / ".dalsegno" / "warehouse" / "db") == before
    assert scratch.remove() == ()
    assert files_in(tmp_path / ".dalsegno" / "warehouse" / "db") == before
    assert [namespace for namespace in catalog.list_namespaces() if "scratch" in namespace[0]] == []


def test_what_a_dead_proof_left_is_found_by_its_prefix(lake: Lake, catalog: SqlCatalog) -> None:
    table_of(catalog, "plays", 1)
    original = lake.load(TableName("lake", ("db",), "plays"))
    dead, alive = Scratch(lake.context), Scratch(lake.context)
    dead.clone_with_history(original, None)
    kept = alive.clone_with_history(original, None)
    assert remove_scratch(lake.context, dead.prefix) == ()
    assert remove_scratch(lake.context, "db") == ()
    assert [namespace for namespace in catalog.list_namespaces() if "scratch" in namespace[0]] == [kept.namespace]
    assert catalog.load_table("db.plays").scan().to_arrow().num_rows == 1
    alive.remove()


def test_the_last_commits_of_all_sources_are_replayed_in_their_order(lake: Lake, catalog: SqlCatalog) -> None:
    for name, commits in (("plays", 4), ("titles", 1), ("empty", 0)):
        table_of(catalog, name, commits)
    plays, titles, empty = (lake.load(TableName("lake", ("db",), name)) for name in ("plays", "titles", "empty"))
    past = past_of([plays, titles, empty], 2)
    line = list(reversed(list(plays.history().ancestors(plays.history().head))))
    assert [each.snapshot.id for each in past.commits] == [each.id for each in line[2:]]
    assert past.bases == {plays.name: line[1], titles.name: titles.history().head, empty.name: None}
    assert past.without == (titles.name, empty.name)
    # All of it begins at the oldest snapshot; what is pinned stays where it is.
    assert past_of([plays], 99).bases == {plays.name: line[0]}
    assert past_of([plays, titles], 0).bases == {plays.name: line[3], titles.name: titles.history().head}
    pinned = past_of([plays, titles], 99, [plays.name])
    assert (pinned.commits, pinned.bases[plays.name], pinned.without) == ((), line[3], (titles.name,))


def test_a_proof_is_of_a_select_and_its_options() -> None:
    one = ProofRequest("SELECT a,  b -- both\nFROM t", "x")
    assert one.digest == ProofRequest("SELECT a, b FROM t", "x", 3).digest
    assert one.digest != ProofRequest("SELECT b, a FROM t", "x").digest
    assert one.digest != ProofRequest("SELECT a, b FROM t", "x", options={"keys": ["a"]}).digest


ORDERS = Described(
    ("lake", "db", "orders"),
    {"id": "bigint", "customer": "string", "amount": "decimal(9,2)", "day": "date", "tags": "map<string,string>"},
    (PartitionField("day"),),
    frozenset({"id"}),
)
BY_CUSTOMER = (
    "SELECT upper(customer) AS c, sum(amount) AS amount, count(id) AS n FROM lake.db.orders GROUP BY upper(customer)"
)


def test_changes_are_made_of_what_the_query_uses() -> None:
    analysis = analyse(BY_CUSTOMER, [ORDERS])
    maker = Maker.of(analysis, ORDERS, "t", "s")
    assert (maker.used, maker.keys) == (("id", "customer", "amount"), ("customer", "day"))
    made = {change.kind: change.statements[0] for change in maker.all()}
    assert set(made) == {
        *("late rows", "duplicates", "NULLs added", "values updated", "keys updated"),
        *("updated to NULL", "rows deleted", "groups deleted"),
    }
    # Maps cannot be compared, and what is required is never NULL.
    assert "tags" not in "".join(made.values())
    assert "NULL AS bigint" not in made["NULLs added"]
    assert made["NULLs added"].count("SELECT") == 3
    assert "t.`amount` =" in made["values updated"]
    assert "t.`customer` = s.`_other_customer`" in made["keys updated"]
    assert "t.`customer` <=> s.`customer` AND t.`day` <=> s.`day` WHEN MATCHED THEN DELETE" in made["groups deleted"]


def test_made_up_changes_do_not_contradict_what_is_trusted() -> None:
    analysis = analyse(BY_CUSTOMER, [ORDERS])
    facts = stated_facts(["trusted unique id", "trusted id -> customer"], [ORDERS])
    maker = Maker.of(analysis, ORDERS, "t", "s", facts)
    made = {change.kind: change.statements[0] for change in maker.all()}
    assert set(made) == {
        *("late rows", "values updated", "keys updated", "updated to NULL", "rows deleted", "groups deleted")
    }
    assert "s.`id` + 7" in made["late rows"]
    assert "t.`customer` =" not in made["keys updated"]
    assert "t.`customer` = NULL" not in made["updated to NULL"]
