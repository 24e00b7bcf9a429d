"""Every command, as a user types it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.acceptance.conftest import BY_DAY, SCHEMA, Commands, append


def test_a_whole_round(run: Commands, table: Table, catalog: SqlCatalog) -> None:
    first = run("capture", "db.t", "--consumer", "daily", "--range", "day")
    assert first.code == 0
    assert "It is the first capture of this consumer, so it begins at the earliest; choose with --from." in first.out
    assert "1 file, 10 rows" in first.out
    assert "1 new: day=2026-11-01" in first.out
    assert "day            2026-11-01 … 2026-11-01" in first.out
    assert "pinned by branch dalsegno_daily" in first.out
    again = run.json("capture", "db.t", "--consumer", "daily")
    assert (again["resumed"], again["tables"][0]["rows"]) == (True, 10)
    assert catalog.load_table(again["tables"][0]["change_table"].removeprefix("lake.")).scan().to_arrow().num_rows == 10
    assert again["capture"] in run("captures").out
    committed = run("commit", again["capture"])
    assert "daily has processed lake.db.t up to snapshot" in committed.out
    assert not catalog.table_exists(again["tables"][0]["change_table"].removeprefix("lake."))
    assert "nothing new for daily" in run("capture", "db.t", "--consumer", "daily").out
    assert "It was committed before, by" in run("commit", again["capture"]).out
    table.refresh()
    append(table, 1, 3)
    append(table, 2, 4)
    late = run.json("capture", "db.t", "--consumer", "daily")["tables"][0]
    assert {p["values"]["day"]: p["novelty"] for p in late["partitions"]} == {
        "2026-11-01": "reopened",
        "2026-11-02": "new",
    }
    assert late["rows"] == 7


def test_a_plan_creates_nothing(run: Commands, table: Table, catalog: SqlCatalog) -> None:
    before = sorted(Path(run.folder).rglob("*"))
    shown = run("plan", "db.t", "--consumer", "daily")
    assert "it would begin at earliest" in shown.out
    assert "this capture" in shown.out and "full scan" in shown.out and "lookback 14 d" in shown.out
    planned = run.json("plan", "db.t", "--consumer", "daily", "--lookback-days", "3")[0]
    assert planned["to_read"] == planned["full_scan"] == {"files": 1, "rows": 10, "bytes": planned["to_read"]["bytes"]}
    assert planned["snapshots"] == {"append: captured": 1}
    assert planned["refusal"] is None
    store_files = {".dalsegno/dalsegno.db", ".dalsegno/dalsegno.db-wal", ".dalsegno/dalsegno.db-shm"}
    new = {str(path.relative_to(run.folder)) for path in set(Path(run.folder).rglob("*")) - set(before)}
    assert {name for name in new if not name.startswith(".dalsegno/dalsegno.db")} == set(), new - store_files
    assert catalog.list_tables("db") == [("db", "t")]
    assert run.json("captures") == []


def test_a_plan_says_why_a_capture_would_be_refused(run: Commands, table: Table) -> None:
    run("commit", run.json("capture", "db.t", "--consumer", "daily")["capture"])
    table.refresh()
    table.delete("id < 5")
    shown = run("plan", "db.t", "--consumer", "daily")
    assert "REFUSED" in shown.out and "1 overwrite: refused" in shown.out
    refused = run("capture", "db.t", "--consumer", "daily")
    assert refused.code == 3
    assert refused.err.startswith("UnsupportedChange: lake.db.t has a change in the range that is not an append")
    assert "--from full" in refused.err
    as_json = run("capture", "db.t", "--consumer", "daily", "--json")
    assert (as_json.code, as_json.json()["error"]["code"]) == (3, "UnsupportedChange")
    full = run.json("capture", "db.t", "--consumer", "daily", "--from", "full")
    assert (full["tables"][0]["full"], full["tables"][0]["rows"]) == (True, 5)


def test_starts(run: Commands, table: Table) -> None:
    second = table.metadata.current_snapshot_id
    append(table, 2, 4)
    begun = run("capture", "db.t", "--consumer", "new", "--from", "latest")
    assert "nothing new for new" in begun.out and "The consumer begins at snapshot" in begun.out
    assert "nothing new for new" in run("capture", "db.t", "--consumer", "new").out
    assert run.json("capture", "db.t", "--consumer", "x", "--from", str(second))["tables"][0]["rows"] == 4
    assert run.json("capture", "db.t", "--consumer", "y", "--from", "2001-01-01")["tables"][0]["rows"] == 14
    chosen_before = run("capture", "db.t", "--consumer", "new", "--from", "earliest")
    assert chosen_before.code == 2
    assert "a start is chosen once" in chosen_before.err


def test_in_portions(run: Commands, table: Table) -> None:
    append(table, 2, 4)
    (run.folder / "dalsegno.toml").write_text('default_namespace = "db"\n', encoding="utf-8")
    waits = "; what came later waits for the next capture"
    assert waits in run("plan", "t", "--consumer", "daily", "--max-bytes", "1").out
    [planned] = run.json("plan", "t", "--consumer", "daily")
    assert planned["has_more"] is False
    shown = run("capture", "t", "--consumer", "daily", "--max-snapshots", "1")
    assert waits in shown.out
    found = run.json("capture", "t", "--consumer", "daily")
    assert [(each["rows"], each["has_more"]) for each in found["tables"]] == [(10, True)]
    run("commit", found["capture"])
    found = run.json("capture", "db.t", "--consumer", "daily", "--max-snapshots", "1", "--max-bytes", "1")
    assert [(each["rows"], each["has_more"]) for each in found["tables"]] == [(4, False)]
    run("commit", found["capture"])
    assert run.json("capture", "t", "--consumer", "daily")["tables"][0]["has_more"] is False


def test_abandon_drop_and_clean(run: Commands, table: Table, catalog: SqlCatalog) -> None:
    made = run.json("capture", "db.t", "--consumer", "daily")
    kept = run("drop", made["capture"])
    assert kept.code == 2
    assert "its change table is still needed" in kept.err
    given_up = run("abandon", made["capture"][:6], "--reason", "a test")
    assert f"Capture {made['capture']} of daily is abandoned, its change tables are dropped." in given_up.out
    assert run("drop", made["capture"]).code == 0
    too_late = run("commit", made["capture"])
    assert too_late.code == 2
    assert "a test" in too_late.err
    assert "There is nothing to clean." in run("clean").out
    fresh = run.json("capture", "db.t", "--consumer", "daily")
    assert fresh["capture"] != made["capture"]
    assert fresh["tables"][0]["rows"] == 10


def test_checkpoints(run: Commands, table: Table) -> None:
    assert "There are no checkpoints." in run("checkpoints", "list").out
    run("commit", run.json("capture", "db.t", "--consumer", "daily")["capture"])
    first = str(table.metadata.current_snapshot_id)
    table.refresh()
    append(table, 2, 4)
    assert first in run("checkpoints", "list").out
    shown = run.json("checkpoints", "show", "db.t", "--consumer", "daily")
    assert {"table_uuid", "branch", "snapshot_id", "sequence_number", "timestamp_ms", "schema_id"} <= set(
        shown["position"]
    )
    back = ("checkpoints", "set", "db.t", "--consumer", "daily", "--to", "earliest", "--reason", "once more")
    refused = run(*back)
    assert refused.code == 2
    assert "rows would be handed out again" in refused.err and "--full-refresh" in refused.err
    moved = run(*back, "--reprocess")
    assert "is at the beginning" in moved.out
    pending = run.json("capture", "db.t", "--consumer", "daily")
    assert pending["tables"][0]["rows"] == 14
    refused = run("checkpoints", "set", "db.t", "--consumer", "daily", "--to", "latest")
    assert refused.code == 3
    assert pending["capture"] in refused.err
    told = run("checkpoints", "history", "--consumer", "daily").out
    assert "once more" in told and "capture committed" in told
    assert run("checkpoints", "show", "db.t", "--consumer", "nobody").code == 2


def test_several_tables_are_cut_at_once(run: Commands, table: Table, catalog: SqlCatalog) -> None:
    other = catalog.create_table("db.u", SCHEMA, partition_spec=BY_DAY)
    catalog.create_table("db.never_written", SCHEMA)
    append(other, 5, 2)
    made = run.json("capture", "db.t", "db.u", "db.never_written", "--consumer", "both")
    assert {each["table"]: each["rows"] for each in made["tables"]} == {
        "lake.db.t": 10,
        "lake.db.u": 2,
        "lake.db.never_written": 0,
    }
    for each in made["tables"]:
        found = catalog.load_table(each["change_table"].removeprefix("lake."))
        assert found.scan().to_arrow().num_rows == each["rows"]
    run("commit", made["capture"])
    (record,) = run.json("checkpoints", "history", "--consumer", "both")
    assert len(record["positions"]) == 3


def test_catalogs(run: Commands, table: Table) -> None:
    checked = run("catalogs", "check")
    assert checked.code == 0
    for ability in ("reach", "list", "read", "register", "pin"):
        assert re.search(rf"yes +{ability} ", checked.out), checked.out
    assert run("catalogs", "tables").out.split() == ["TABLE", "lake.db.t"]
    assert run.json("catalogs", "spark")["spark.sql.catalog.lake.type"] == "jdbc"


def test_a_catalog_that_cannot_be_reached(run: Commands) -> None:
    (run.folder / "dalsegno.toml").write_text(
        '[catalogs.lake]\ntype = "rest"\nuri = "http://127.0.0.1:1"\n[catalogs.lake.properties]\ntoken = "hush"\n',
        encoding="utf-8",
    )
    checked = run("catalogs", "check")
    assert checked.code == 4
    assert re.search(r"NO +reach ", checked.out) and "not tried" in checked.out
    refused = run("capture", "db.t", "--consumer", "daily")
    assert refused.code == 4
    assert "hush" not in refused.err + checked.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("capture", "t", "--consumer", "c"), 2, "expected namespace.table or catalog.namespace.table"),
        (("capture", "db.none", "--consumer", "c"), 2, "there is no such table"),
        (("capture", "db.t", "--consumer", "a b"), 2, "cannot be the name of a consumer"),
        (("capture", "db.t", "db.t", "--consumer", "c"), 2, "each only once"),
        (("capture", "db.t", "--consumer", "c", "--branch", "x"), 2, "has no branch 'x'; it has main"),
        (("capture", "db.t", "--consumer", "c", "--range", "dat"), 2, "Did you mean 'day'"),
        (("plan", "db.t", "--consumer", "c", "--event-time", "id"), 2, "must be a date or a timestamp"),
        (("commit", "nosuch"), 2, "nosuch"),
        (("capture", "db.t"), 2, "--consumer"),
        (("capture", "db.t", "--consumer", "c", "--max-snapshots", "0"), 2, "--max-snapshots"),
    ],
)
def test_wrong_input_is_explained(
    run: Commands, table: Table, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run(*arguments)
    assert done.code == code
    assert words in done.err
    assert run.json("captures") == [], "nothing may be left behind"


def test_the_installed_command(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("dalsegno")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("dalsegno ")
    failed = subprocess.run(
        [command, "checkpoints", "list"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "DALSEGNO_STORE": "postgresql://someone:hush@127.0.0.1:1/none"},
    )
    assert failed.returncode == 4
    assert "hush" not in failed.stderr + failed.stdout
    assert failed.stderr.startswith("StoreFailed: ")
