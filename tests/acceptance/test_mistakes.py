"""Mistakes that are found before a run: channels, catalogs, tables, keys by table."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.acceptance.conftest import Commands, append

ALERTING = "Workflow:\n  id: w\n  alerting: {on_failure: [%s]}\n  jobs: [{job: {id: a, type: NoOp}}]\n"
CHANNEL = '[notifications.ops]\ntype = "webhook"\nurl = "https://example.com/hook"\n'


def test_channels_of_alerts(run: Commands) -> None:
    (run.folder / "w.yaml").write_text(ALERTING % "osp")
    # Where there are no channels at all, they may be elsewhere; but nobody would get what is pushed.
    assert "warning: there is no channel 'osp'; the settings have none" in run("validate", "w.yaml").err
    done = run("push", "w.yaml")
    assert (done.code, "w.yaml:3:27: there is no channel 'osp'" in done.err) == (2, True)
    with (run.folder / "dalsegno.toml").open("a") as settings:
        settings.write(f"\n{CHANNEL}")
    for command in ("validate", "push"):
        done = run(command, "w.yaml")
        assert done.code == 2
        assert "w.yaml:3:27: there is no channel 'osp'; did you mean 'ops'?" in done.err
    (run.folder / "w.yaml").write_text(ALERTING % "ops")
    assert run("push", "w.yaml").code == 0


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("foo.db.playback", "There is no catalog 'foo', which 'foo.db.playback' begins with", "lake.db.playback"),
        ("lke.db.playback", "There is no catalog 'lke', which 'lke.db.playback' begins with", "lake.db.playback"),
        ("db.playbak", "there is no such table", "Did you mean 'lake.db.playback'?"),
        ("dbb.playback", "There is no namespace 'dbb' in the catalog 'lake'", "Did you mean 'lake.db.playback'?"),
        ("nothing.like.this.one", "There is no catalog 'nothing'", "the settings name lake"),
    ],
)
def test_tables_that_are_not_there(
    run: Commands, catalog: SqlCatalog, table: Table, written: str, message: str, hint: str
) -> None:
    catalog.create_table("db.playback", table.schema())
    done = run("capture", written, "--consumer", "c")
    assert done.code == 2
    assert message in done.err
    assert hint in done.err


def test_keys_by_table(run: Commands, catalog: SqlCatalog, table: Table) -> None:
    other = catalog.create_table("db.members", table.schema())
    append(other, 1, 3)
    first, second = (field.name for field in table.schema().fields[:2])
    both = ("capture", "db.t", "db.members", "--consumer", "c", "--changes", "keys", "--json")
    assert "needs to know the keys" in run(*both, "--key", f"db.t:{first}").out
    assert "is not captured" in run(*both, "--key", f"db.tt:{first}", "--key", second).out
    done = run(*both, "--key", f"lake.db.t:{first}", "--key", f"members:{second}", "--from", "earliest")
    assert done.code == 0, done.err
    capture = done.json()["capture"]
    for name, key, unused in (("db.t", first, second), ("db.members", second, first)):
        sql = run("query", capture, "--table", name).out
        assert f"SELECT DISTINCT `{key}`" in sql
        assert f"SELECT DISTINCT `{unused}`" not in sql


def test_references_in_files_of_sql(run: Commands) -> None:
    capture = "{id: capture, type: IpCapture, ip_capture: {source_tables: [lake.db.t]}}"
    commit = "{id: commit, type: IpCommit, ip_commit: {capture_step: capture}}"
    steps = (
        f"    - job: {capture}\n    - job: {{id: load, type: Spark, spark: {{file: load.sql}}}}\n    - job: {commit}\n"
    )
    (run.folder / "w.yaml").write_text(f"Workflow:\n  id: w\n  dag: sequential\n  jobs:\n{steps}")
    (run.folder / "load.sql").write_text("INSERT INTO t SELECT * FROM ${capture.chnage_table}")
    for command in ("validate", "push"):
        done = run(command, "w.yaml")
        assert done.code == 2
        assert "w.yaml:6:50: load.sql: 'capture' has no output 'chnage_table'; did you mean 'change_table'?" in done.err
    (run.folder / "load.sql").write_text("INSERT INTO t SELECT * FROM ${capture.change_table}")
    assert run("push", "w.yaml").code == 0
