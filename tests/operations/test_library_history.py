"""Programs that use the library leave a row for each change, as those who call operations do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dalsegno import Lake, Settings
from dalsegno.operations.facade import Operations
from dalsegno.settings import CatalogSettings
from tests.callers import admin

ROWS = pa.table({"id": [1, 2]})


def test_the_library_is_in_the_history(tmp_path: Path) -> None:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as lake:
        lake.actor = "ada"
        tables = lake.catalog("lake").pyiceberg
        tables.create_namespace("db")
        table = tables.create_table("db.plays", ROWS.schema)
        table.append(ROWS)
        with lake.capture("db.plays", consumer="daily") as changes:
            assert changes
        table.append(ROWS)
        pending = lake.capture("db.plays", consumer="daily")
        lake.abandon(pending.id, reason="wrong job")
        lake.set_checkpoint("db.plays", consumer="daily", to="latest", reason="skip it")
        # What is done already changes nothing.
        lake.commit(changes.id)
    with Operations(None, settings, admin("eve")) as operations:
        found = [(each.caller, each.verb, each.reason) for each in operations.admin.history()]
    assert found == [
        ("ada", "checkpoints.set", "skip it"),
        ("ada", "captures.abandon", "wrong job"),
        ("ada", "captures.capture", None),
        ("ada", "captures.commit", None),
        ("ada", "captures.capture", None),
    ]
