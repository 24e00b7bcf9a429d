"""init, import dbt, and folders of models, as people call them; without Spark."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.conftest import Commands
from tests.operations.test_dbt_import import MANIFESTS

SELECT = "SELECT id FROM lake.db.plays\n"


def test_init_makes_a_project_that_is_valid(run: Commands) -> None:
    done = run("init", "my project")
    assert done.code == 0
    assert done.out.endswith("\nNext:\n  cd 'my project'\n  dalsegno run seed.yaml\n  dalsegno run models\n")
    project = run.folder / "my project"
    files = {file.relative_to(project).as_posix() for file in project.rglob("*") if file.is_file()}
    assert files == {"README.md", "dalsegno.toml", "models/shop/orders_by_day.sql", "seed.yaml", ".gitignore"}
    assert run("validate", "my project/models", "my project/seed.yaml").code == 0


def test_init_keeps_what_is_there(run: Commands) -> None:
    (run.folder / "README.md").write_text("mine")
    found = run.json("init")
    assert (found["folder"], found["kept"]) == (".", ["README.md"])
    assert (run.folder / "README.md").read_text() == "mine"
    assert run.json("init")["created"] == []
    (run.folder / "file").write_text("")
    done = run("init", "file")
    assert done.code == 2 and "UserError" in done.err


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder / "models" / "db" / f"{name}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_validate_a_folder(run: Commands) -> None:
    write(run.folder, a=SELECT, b="-- kyes: id\n" + SELECT, c="SELECT {{ x }}")
    done = run("validate", "models")
    assert done.code == 2
    assert done.err.splitlines() == [
        "models/db/b.sql:1:1: a model has no setting 'kyes'; did you mean 'keys'?",
        "models/db/c.sql:1:8: '{{' is a template, expected plain SQL; "
        "take what dbt compiles: dalsegno import dbt target/manifest.json",
    ]
    [first, _] = json.loads(run("validate", "models", "--json").out)["files"]
    assert (first["file"], first["valid"], first["problems"][0]["line"]) == ("models/db/b.sql", False, 1)
    write(run.folder, b=SELECT, c=SELECT)
    assert run("validate", "models").out.splitlines()[0] == "models/db/a.sql: db.a is valid, 1 step"
    assert not (run.folder / ".dalsegno").exists()


def test_push_a_folder(run: Commands) -> None:
    write(run.folder, a=SELECT, b="SELECT id FROM db.a")
    assert run("push", "models").out == "Pushed db.a as version 1.\nPushed db.b as version 1.\n"
    write(run.folder, b="SELECT id FROM db.a WHERE id > 1")
    assert run("push", "models/").out == "Pushed db.b as version 2.\n1 model had not changed.\n"
    (run.folder / "models" / "db" / "b.sql").unlink()
    assert run("push", "./models").out.splitlines() == [
        "1 model had not changed.",
        "db.b has no file any more. To delete the workflow: dalsegno delete db.b",
    ]
    found = run.json("push", "models")
    assert ([each["workflow_id"] for each in found["models"]], found["without_file"]) == (["db.a"], ["db.b"])
    write(run.folder, b="SELECT 1; SELECT 2")
    done = run("push", "models")
    assert done.code == 2 and done.err.startswith("models/db/b.sql:1:1: The query has several statements")


def test_options_of_a_workflow_do_not_fit_a_folder(run: Commands) -> None:
    write(run.folder, a=SELECT)
    for options in (["x=1"], ["--key", "k"], ["--version", "2"], ["--no-wait"]):
        done = run("run", "models", *options)
        assert done.code == 2 and "A folder of models is run without" in done.err
    done = run("run", "nothing", "--select", "a")
    assert done.code == 2 and "--select is an option of a folder of models" in done.err
    done = run("run", "models", "--select", "b")
    assert done.code == 2 and "There is no model 'b'" in done.err
    assert not json.loads(run("workflows", "--json").out)


def test_a_workflow_of_the_folders_name_counts_first(run: Commands) -> None:
    write(run.folder, a=SELECT)
    (run.folder / "w.yaml").write_text("Workflow: {id: models, jobs: [{job: {id: x, type: NoOp}}]}")
    assert run("push", "w.yaml").code == 0
    assert "models/1" in run("run", "models").out
    assert "There is no model 'b'" in run("run", "./models", "--select", "b").err


def test_a_model_whose_source_is_not_there(run: Commands) -> None:
    write(run.folder, a=SELECT, b="SELECT id FROM db.a")
    done = run("run", "models")
    assert done.code == 10
    first, *_, second, total = done.out.splitlines()
    assert first.startswith("✘ db/a  failed  There is no namespace 'db'")
    assert second == "∅ db/b  not run  It reads db/a, which failed."
    assert total.startswith("2 models: 1 failed, 1 not run; 0 rows written in ")


def test_import_dbt(run: Commands) -> None:
    found = run.json("import", "dbt", str(MANIFESTS / "manifest.json"), "--into", "here")
    assert {each["file"] for each in found["models"]} == {
        *("here/marts/customers.sql", "here/marts/daily_revenue.sql"),
        *("here/staging/stg_customers.sql", "here/staging/stg_orders.sql"),
    }
    assert run("validate", "here").code == 0
    (run.folder / "here" / "marts" / "customers.sql").write_text("SELECT 1")
    done = run("import", "dbt", str(MANIFESTS / "manifest.json"), "--into", "here")
    assert done.code == 2 and "--force" in done.err
    done = run("import", "dbt", "nowhere.json")
    assert done.code == 2 and "dbt compile --full-refresh" in done.err
