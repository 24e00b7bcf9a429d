"""Models as they are written: headers, names, order, and how files become versions of workflows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.errors import Conflict, InvalidWorkflow, UnknownName, UserError
from dalsegno.operations.facade import Operations
from dalsegno.operations.models.graph import ModelGraph
from dalsegno.operations.models.header import known_words
from dalsegno.operations.models.model_files import read_models
from dalsegno.operations.models.schedules import trigger_of
from dalsegno.settings import CatalogSettings
from dalsegno.triggers.table_triggers.engine.watches import watches_of
from dalsegno.triggers.table_triggers.model import IncrementalTrigger
from tests.callers import admin


@pytest.fixture
def operations(tmp_path: Path) -> Iterator[Operations]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as lake:
        tables = lake.catalog("lake").pyiceberg
        tables.create_namespace("db")
        tables.create_table("db.plays", pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    with Operations(None, settings, admin()) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def write(folder: Path, **texts: str) -> None:
    """``db__daily`` is ``db/daily.sql``."""
    for name, text in texts.items():
        file = folder / f"{name.replace('__', '/')}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def stored(operations: Operations, workflow_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(operations.workflows.definition(workflow_id))
    return found


def block(operations: Operations, workflow_id: str) -> dict[str, Any]:
    [step] = stored(operations, workflow_id)["workflow"]["steps"]
    return {name: each["value"] for name, each in step["step"]["params"]["incremental"]["value"].items()}


def problems(operations: Operations, folder: Path) -> str:
    with pytest.raises(InvalidWorkflow) as caught:
        operations.models.check(folder)
    return caught.value.message.replace(f"{folder}/", "")


# Headers.


def test_a_file_without_a_header_is_a_workflow(operations: Operations, folder: Path) -> None:
    write(folder, db__daily="SELECT day, count(*) AS plays FROM db.plays GROUP BY day;\n")
    operations.models.push(folder)
    found = block(operations, "db.daily")
    assert found["target"] == "lake.db.daily"
    assert found["sources"] == ["lake.db.plays"]
    assert "partitioned_by" not in found


def test_a_header_says_what_a_workflow_would(operations: Operations, folder: Path) -> None:
    header = """-- Plays by day, for the report: exact.
-- Target: lake.db.by_day
-- partitioned by: days(day), bucket(16, id)
-- keys: day
-- policy: strict
-- schedule: daily 02:30 Europe/Berlin
-- workflow: plays-by-day
-- owner: ada
-- tags: media, report
-- conf: spark.sql.ansi.enabled=true
-- facts: id -> day; trusted unique id, day
-- dimensions: lake.db.plays=follow

SELECT day, id FROM db.plays"""
    write(folder, any_name=header)
    [pushed] = operations.models.push(folder).models
    assert pushed.workflow_id == "plays-by-day"
    found, definition = block(operations, "plays-by-day"), stored(operations, "plays-by-day")
    assert found["target"] == "lake.db.by_day"
    assert found["partitioned_by"] == ["days(day)", "bucket(16, id)"]
    assert (found["keys"], found["policy"]) == (["day"], "strict")
    assert found["facts"] == ["id -> day", "trusted unique id, day"]
    assert found["dimensions"] == {"lake.db.plays": "follow"}
    assert definition["properties"]["owner"] == "ada"
    assert definition["workflow"]["tags"] == ["media", "report"]
    [trigger] = definition["workflow"]["time_triggers"]
    assert (trigger["cron"], trigger["timezone"]) == ("30 2 * * *", "Europe/Berlin")


def test_on_change_watches_what_is_read(operations: Operations, folder: Path) -> None:
    write(folder, db__daily="-- schedule: on change\nSELECT day FROM plays p JOIN db.plays q USING (day)")
    assert "is not the name of a table" in problems(operations, folder)
    write(folder, db__daily="-- schedule: on change\nSELECT id FROM db.plays")
    operations.models.push(folder)
    workflow = operations.machinery.versions.blueprint("db.daily", 1).workflow
    [trigger] = workflow.triggers_of(IncrementalTrigger)
    [watch] = watches_of(operations._context.lake, workflow, trigger)
    assert (str(watch.table), watch.consumer) == ("lake.db.plays", "lake.db.daily")


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("hourly", "@hourly"),
        ("daily", "0 0 * * *"),
        ("Daily 2:05", "5 2 * * *"),
        ("weekly", "0 0 * * 1"),
        ("weekly Sunday 23:59", "59 23 * * 0"),
        ("cron 0 6 * * MON-FRI", "0 6 * * MON-FRI"),
        ("cron */15 * * * *", "*/15 * * * *"),
    ],
)
def test_schedules(text: str, cron: str) -> None:
    assert trigger_of(text) == {"cron": cron}
    assert trigger_of(f"{text} America/Argentina/Ushuaia") == {"cron": cron, "timezone": "America/Argentina/Ushuaia"}
    assert trigger_of(f"{text} UTC") == {"cron": cron, "timezone": "UTC"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("-- partitoned by: day", "1:1: a model has no setting 'partitoned by'; did you mean 'partitioned by'?"),
        ("-- todo: more", "1:1: a model has no setting 'todo'; known are"),
        ("-- query: SELECT 1", "a model has no setting 'query'"),
        ("\n  -- keys:", "2:3: 'keys' has no value"),
        ("-- keys: a\n-- KEYS: b", "2:1: 'KEYS' is given twice; it is in line 1, too"),
        ("-- schedule: nightly", "1:1: 'nightly' is not a schedule; write for instance"),
        ("-- schedule: daily 25:00", "1:1: '25:00' is not a time of day"),
        ("-- keys: a\n-- schedule: cron 61 * * * *", "2:1: '61 * * * *' is not a schedule"),
        ("-- schedule: daily 02:00 Europe/Berln", "1:1: there is no time zone 'Europe/Berln'"),
        ("-- policy: srict", "1:1: "),
        ("-- target: nothing", "1:1: 'nothing' is not the name of a table"),
        ("-- workflow: a b", "1:1: 'a b' cannot be the id of a workflow"),
        ("-- conf: x", "1:1: 'conf' is 'x', expected NAME=VALUE"),
        ("-- pinned: db.plays", "a model has no setting 'pinned'"),
    ],
)
def test_a_mistake_in_a_header_has_its_line(operations: Operations, folder: Path, line: str, said: str) -> None:
    write(folder, db__daily=f"{line}\nSELECT id FROM db.plays")
    assert said in problems(operations, folder)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "The query is empty"),
        ("-- keys: a\n", "The query is empty"),
        ("SELECT 1; SELECT 2", "The query has several statements"),
        ("DELETE FROM db.plays", "The query is not a SELECT"),
        ("SELECT id\nFROM {{ ref('plays') }}", "2:6: '{{' is a template, expected plain SQL; take what dbt compiles"),
        ("{% if x %}SELECT 1", "1:1: '{%' is a template"),
        ("SELECT '${day}' AS d FROM db.plays", "1:9: a model has no parameters"),
        ("SELECT id FROM lake.db.daily", "the SELECT reads its own target, lake.db.daily"),
    ],
)
def test_a_mistake_in_a_select(operations: Operations, folder: Path, text: str, said: str) -> None:
    write(folder, db__daily=text)
    assert said in problems(operations, folder)


def test_all_problems_of_all_files_come_at_once(operations: Operations, folder: Path) -> None:
    write(
        folder, db__a="-- kyes: x\nSELECT id FROM db.plays", db__b="SELECT 1; SELECT 2", db__c="SELECT id FROM db.plays"
    )
    found = problems(operations, folder)
    assert "db/a.sql:1:1" in found and "db/b.sql:1:1" in found and "db/c.sql" not in found
    with pytest.raises(InvalidWorkflow):
        operations.models.push(folder)
    assert not operations.workflows.list()


def test_the_words_of_a_header_are_those_of_the_step() -> None:
    assert {"target", "keys", "partitioned_by", "policy", "strategy", "schedule"} <= set(known_words())
    assert not {"query", "sources"} & set(known_words())


def test_dollar_signs_stay_what_they_are(operations: Operations, folder: Path) -> None:
    from dalsegno.spec.params.literals import interpolate

    text = "SELECT id, '$.title $name $$ $FILE{x}' AS t FROM db.plays"
    write(folder, db__daily=text)
    operations.models.push(folder)
    assert interpolate(block(operations, "db.daily")["query"], lambda name: f"<{name}>") == text


# Names.


def test_folders_are_namespaces(tmp_path: Path, folder: Path, operations: Operations) -> None:
    write(folder, a__b__c="SELECT id FROM db.plays", top="SELECT id FROM db.plays")
    assert "top.sql:1:1: the model has no namespace" in problems(operations, folder)
    settings = Settings(root=tmp_path, catalogs=operations.settings.catalogs, default_namespace="shop")
    names = {model.path: (model.workflow_id, str(model.target)) for model in read_models(folder, settings)}
    assert names == {"a/b/c": ("a.b.c", "lake.a.b.c"), "top": ("shop.top", "lake.shop.top")}


def test_odd_names_need_an_id(operations: Operations, folder: Path) -> None:
    folder.mkdir()
    (folder / "db").mkdir()
    (folder / "db" / "Käse für alle.sql").write_text("SELECT id FROM db.plays")
    assert "add: -- workflow: ID" in problems(operations, folder)
    (folder / "db" / "Käse für alle.sql").write_text("-- workflow: kaese\nSELECT id FROM db.plays")
    operations.models.push(folder)
    assert block(operations, "kaese")["target"] == "lake.db.Käse für alle"
    (folder / "db" / "a.b.sql").write_text("SELECT id FROM db.plays")
    assert "has a dot" in problems(operations, folder)


def test_two_models_of_one_target(operations: Operations, folder: Path) -> None:
    write(folder, db__a="SELECT id FROM db.plays", other="-- target: db.a\nSELECT id FROM db.plays")
    assert "other.sql:1:1: " in (found := problems(operations, folder)) and "has the same table, lake.db.a" in found
    write(folder, other="-- target: db.b\n-- workflow: db.a\nSELECT id FROM db.plays")
    assert "has the same id, db.a" in problems(operations, folder)


def test_a_folder_without_models(operations: Operations, folder: Path) -> None:
    with pytest.raises(UnknownName, match="There is no folder"):
        operations.models.check(folder)
    write(folder / ".hidden", db__a="SELECT 1")
    with pytest.raises(UserError, match=r"There is no model in .*: no file ends with \.sql"):
        operations.models.check(folder)


# Order.


def chain(folder: Path) -> None:
    write(
        folder,
        db__c="SELECT id FROM lake.db.b JOIN db.side USING (id)",
        db__a="SELECT id FROM db.plays",
        db__b="SELECT id FROM db.a",
        db__side="SELECT id FROM db.plays",
        db__alone="SELECT id FROM db.plays",
    )


def test_models_come_after_what_they_read(operations: Operations, folder: Path) -> None:
    chain(folder)
    order = [model.model for model in operations.models.check(folder)]
    assert sorted(order) == ["db/a", "db/alone", "db/b", "db/c", "db/side"]
    assert order.index("db/a") < order.index("db/b") < order.index("db/c") > order.index("db/side")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["b"], {"b"}),
        (["+b"], {"a", "b"}),
        (["b+"], {"b", "c"}),
        (["+b+"], {"a", "b", "c"}),
        (["+db.c"], {"a", "b", "c", "side"}),
        (["a", "lake.db.alone"], {"a", "alone"}),
        (["db/a.sql"], {"a"}),
        ([], {"a", "b", "c", "side", "alone"}),
    ],
)
def test_selected(operations: Operations, folder: Path, wanted: list[str], found: set[str]) -> None:
    chain(folder)
    graph = ModelGraph.of(read_models(folder, operations.settings))
    assert {model.name for model in graph.selected(wanted)} == found


def test_a_name_that_means_none_or_several(operations: Operations, folder: Path) -> None:
    write(folder, db__daily="SELECT id FROM db.plays", tv__daily="SELECT id FROM db.plays")
    graph = ModelGraph.of(read_models(folder, operations.settings))
    with pytest.raises(UserError, match="2 models are named 'daily': db/daily, tv/daily"):
        graph.selected(["daily"])
    with pytest.raises(UserError, match=r"There is no model 'dialy'") as caught:
        graph.selected(["dialy"])
    assert caught.value.hint == "Did you mean 'daily'?"


def test_a_cycle_is_named(operations: Operations, folder: Path) -> None:
    write(folder, db__a="SELECT id FROM db.c", db__b="SELECT id FROM db.a", db__c="SELECT id FROM db.b")
    with pytest.raises(UserError, match=r"The models read each other: db/\w → db/\w → db/\w → db/\w\."):
        operations.models.push(folder)
    assert not operations.workflows.list()


def test_a_long_chain(operations: Operations, folder: Path) -> None:
    texts = {f"db__m{number}": f"SELECT id FROM db.m{number - 1}" for number in range(1, 300)}
    write(folder, db__m0="SELECT id FROM db.plays", **texts)
    graph = ModelGraph.of(read_models(folder, operations.settings))
    assert [model.name for model in graph.models] == [f"m{number}" for number in range(300)]
    assert len(graph.selected(["+m299"])) == len(graph.selected(["m0+"])) == 300


# Versions.


def versions(operations: Operations, folder: Path) -> dict[str, tuple[int, bool]]:
    return {each.workflow_id: (each.version, each.is_new) for each in operations.models.push(folder).models}


def test_only_files_that_changed_get_a_version(operations: Operations, folder: Path) -> None:
    write(folder, db__a="SELECT id FROM db.plays", db__b="SELECT id FROM db.a")
    assert versions(operations, folder) == {"db.a": (1, True), "db.b": (1, True)}
    assert versions(operations, folder) == {"db.a": (1, False), "db.b": (1, False)}
    write(folder, db__b="-- owner: ada\nSELECT id FROM db.a")
    assert versions(operations, folder) == {"db.a": (1, False), "db.b": (2, True)}


def test_columns_that_are_added_make_no_version(operations: Operations, folder: Path) -> None:
    """``SELECT *`` is frozen when its file is pushed, not whenever the folder is."""
    write(folder, db__copy="SELECT * FROM db.plays")
    assert versions(operations, folder) == {"db.copy": (1, True)}
    frozen = block(operations, "db.copy")["query"]
    assert "*" not in frozen
    with operations._context.lake.catalog("lake").pyiceberg.load_table("db.plays").update_schema() as schema:
        from pyiceberg.types import StringType

        schema.add_column("title", StringType())
    assert versions(operations, folder) == {"db.copy": (1, False)}
    assert block(operations, "db.copy")["query"] == frozen


def test_a_star_is_frozen_once_its_table_is_there(operations: Operations, folder: Path) -> None:
    write(folder, db__copy="SELECT * FROM db.later", db__count="SELECT count(*) AS n FROM db.plays")
    assert versions(operations, folder) == {"db.copy": (1, True), "db.count": (1, True)}
    assert versions(operations, folder) == {"db.copy": (1, False), "db.count": (1, False)}
    tables = operations._context.lake.catalog("lake").pyiceberg
    tables.create_table("db.later", pa.schema([("id", pa.int64())]))
    assert versions(operations, folder) == {"db.copy": (2, True), "db.count": (1, False)}
    assert versions(operations, folder) == {"db.copy": (2, False), "db.count": (1, False)}


def test_a_removed_file_leaves_its_workflow(operations: Operations, folder: Path) -> None:
    write(folder, db__a="SELECT id FROM db.plays", db__b="SELECT id FROM db.a")
    write(folder.parent / "others", db__c="SELECT id FROM db.plays")
    operations.models.push(folder)
    operations.models.push(folder.parent / "others")
    (folder / "db" / "b.sql").unlink()
    assert operations.models.push(folder).without_file == ("db.b",)
    assert operations.workflows.newest_version("db.b") == 1
    operations.workflows.delete("db.b")
    assert operations.models.push(folder).without_file == ()


def test_a_moved_file_is_the_same_workflow(operations: Operations, folder: Path) -> None:
    text = "-- target: db.a\nSELECT id FROM db.plays"
    write(folder, old=text)
    operations.models.push(folder)
    (folder / "old.sql").rename(folder / "new.sql")
    assert versions(operations, folder) == {"db.a": (2, True)}
    assert operations.models.push(folder).without_file == ()


def test_the_id_of_another_workflow_is_not_taken(operations: Operations, folder: Path) -> None:
    operations.workflows.push("Workflow: {id: db.a, jobs: [{job: {id: x, type: NoOp}}]}")
    write(folder, db__a="SELECT id FROM db.plays", db__b="SELECT id FROM db.plays")
    with pytest.raises(Conflict, match=r"the workflow db\.a is in the store already, and is not that of a model"):
        operations.models.push(folder)
    write(folder.parent / "others", db__b="SELECT day FROM db.plays")
    (folder / "db" / "a.sql").unlink()
    operations.models.push(folder)
    with pytest.raises(Conflict, match=r"and is that of models/db/b\.sql"):
        operations.models.push(folder.parent / "others")


# Runs.


def test_a_run_that_is_stopped_stops_the_rest(operations: Operations, folder: Path) -> None:
    chain(folder)
    found = operations.models.run(folder, finish=lambda run: operations.runs.stop(run.id, reason="Ctrl-C"))
    first, *rest = found.models
    assert (first.status, first.run) == ("failed", f"{first.workflow_id}/1")
    assert "stopped by ada: Ctrl-C" in str(first.reason)
    assert {(each.status, each.reason) for each in rest} == {("not_run", "The run before it was stopped.")}
    assert not found.is_success


def test_a_full_refresh_empties_only_what_is_named(operations: Operations, folder: Path) -> None:
    from dalsegno.model.full_refresh import FullRefresh

    write(folder, db__a="SELECT id FROM db.plays", db__b="SELECT id FROM db.plays")
    asked = FullRefresh(frozenset({"db.a"}), frozenset())
    runs = []

    def finish(run: Any) -> Any:
        runs.append(run)
        return operations.runs.kill(run.id)

    found = operations.models.run(folder, full_refresh=asked, finish=finish)
    assert [each.status for each in found.models] == ["failed", "failed"]
    assert [run.initiator["full_refresh"]["empty"] for run in runs] == [["db.a"], []]
