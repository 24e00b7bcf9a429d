"""Conflicts and lost answers of Glue: boto3 sends a request again if the answer to it was lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dalsegno import Lake
from dalsegno.errors import UnknownName
from dalsegno.iceberg.catalogs import ConcurrentChange
from dalsegno.model.tables import TableName
from tests.iceberg.support import fresh_name, numbered
from tests.lakes.catalogs import make_settings, rows_of, stored_below, table_with
from tests.lakes.glue import GlueProxy, running_glue_proxy
from tests.lakes.object_stores import ObjectStore

BRANCH = {"type": "branch", "min-snapshots-to-keep": 1}


@pytest.fixture(scope="module")
def glue(moto: ObjectStore) -> Iterator[GlueProxy]:
    with running_glue_proxy(moto) as proxy:
        yield proxy


@pytest.fixture
def lake(request: pytest.FixtureRequest, glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    settings = make_settings("glue", request, tmp_path, "lake")
    catalog = settings.catalogs["lake"]
    catalog = replace(catalog, properties={**catalog.properties, "glue.endpoint": glue.endpoint})
    glue.lost.clear()
    with Lake.open(replace(settings, catalogs={"lake": catalog}, change_namespace=fresh_name())) as opened:
        yield opened


def test_lost_answers_are_found_out(lake: Lake, glue: GlueProxy, moto: ObjectStore) -> None:
    """The pin, the change table and its drop are made once, and no file of theirs is taken for a leftover."""
    name = table_with(lake, 1, 2)
    glue.losing += ["UpdateTable", "CreateTable", "DeleteTable"]
    changes = lake.capture(name, consumer="c")
    assert glue.lost == ["UpdateTable", "CreateTable"]
    assert changes.details["pinned"], changes.details["pin"]
    assert rows_of(lake, TableName.of(changes.table)) == numbered(1, 2)
    assert rows_of(lake, lake.name(name)) == numbered(1, 2)
    assert lake.capture(name, consumer="c").id == changes.id
    assert changes.commit().left_over == ()
    assert glue.losing == []
    (captured,) = changes.tables.values()
    assert stored_below(captured.location, moto.properties) == set()
    assert not lake.capture(name, consumer="c")


def test_a_pin_never_undoes_a_commit(lake: Lake, moto: ObjectStore) -> None:
    name = lake.name(table_with(lake, 1))
    catalog = lake.catalog("lake")
    before = catalog.load(name)
    table_with(lake, 2)
    files = stored_below(str(before.metadata["location"]), moto.properties)
    head = before.metadata["current-snapshot-id"]
    with pytest.raises(ConcurrentChange):
        catalog.set_ref(before, "dalsegno_c", {"snapshot-id": head, **BRANCH})
    assert rows_of(lake, name) == numbered(1, 2)
    assert stored_below(str(before.metadata["location"]), moto.properties) == files


def test_a_commit_between_the_look_and_the_swap_wins(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is Glue that compares."""
    name = lake.name(table_with(lake, 1))
    catalog = lake.catalog("lake")
    before, late = catalog.load(name), iter([2])
    looked = catalog._entry  # type: ignore[attr-defined]

    def after_a_writer(wanted: TableName) -> object:
        found = looked(wanted)
        for id_ in late:
            table_with(lake, id_)
        return found

    monkeypatch.setattr(catalog, "_entry", after_a_writer)
    with pytest.raises(ConcurrentChange):
        catalog.set_ref(before, "x", {"snapshot-id": before.metadata["current-snapshot-id"], **BRANCH})
    assert rows_of(lake, name) == numbered(1, 2)


def test_what_is_not_iceberg_is_refused_by_name(lake: Lake, moto: ObjectStore) -> None:
    namespace = table_with(lake, 1).partition(".")[0]
    moto.service("glue").create_table(DatabaseName=namespace, TableInput={"Name": "csv", "Parameters": {}})
    with pytest.raises(UnknownName, match="isn't an Iceberg table"):
        lake.capture(f"{namespace}.csv", consumer="c")
    with pytest.raises(UnknownName, match="no such table"):
        lake.capture(f"{namespace}.none", consumer="c")
