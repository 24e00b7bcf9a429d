"""Every example does what its README says: its commands are typed here, on one warm Spark for all of them.

Each makes data, runs its pipeline, and compares the target with a computation from scratch, day after day.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import date
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.audit.results import AuditRequest
from dalsegno.operations.callers import local_caller
from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.store import Store
from tests.conftest import warm_spark
from tests.docs.markdown import ROOT
from tests.docs.running import Run, run_command, run_program
from tests.examples.hostile import CASES, Case, Lakeside
from tests.examples.recipes import TABLES, WORKFLOWS, write_files

pytestmark = pytest.mark.spark

#: The playback example is run by ``test_playback``.
EXAMPLES = sorted({readme.parent.name for readme in (ROOT / "examples").glob("*/README.md")} - {"playback"})
#: A catalog that no example means: theirs are defined for each session.
SERVER = """
default_catalog = "nobodys"
[spark.conf]
"spark.sql.shuffle.partitions" = 4
"""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """A copy of all examples, whose settings mean one Spark."""
    from dalsegno.steps.spark.sessions import local_server

    root, home = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("home")
    (root / "dalsegno.toml").write_text(SERVER, encoding="utf-8")
    install_duckdb_extensions(home)
    with warm_spark(root, pytestconfig) as settings, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALSEGNO_SPARK_REMOTE", local_server(settings).ensure().address)
        patch.setenv("HOME", str(home))
        yield copied(tmp_path_factory.mktemp("copy"))


def copied(folder: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns(".dalsegno")))


def install_duckdb_extensions(home: Path) -> None:
    """What ``INSTALL`` would fetch, from the package index: tests depend on no other server."""
    import duckdb

    [(platform,)] = duckdb.sql("PRAGMA platform").fetchall()
    version = f"v{duckdb.__version__}"
    folder = home / ".duckdb" / "extensions" / version / platform
    folder.mkdir(parents=True)
    for name in ("avro", "iceberg"):
        extension = files(f"duckdb_extension_{name}") / "extensions" / version / f"{name}.duckdb_extension"
        (folder / extension.name).write_bytes(extension.read_bytes())


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(examples / name)
    run = Run()
    for shown in run.page(Path("README.md").read_text(encoding="utf-8")):
        assert run.agrees(shown), (
            f"examples/{name}/README.md:{shown.line}: {shown.what}\n\n"
            f"It shows:\n{run.plain(shown.expected)}\n\nIt printed:\n{run.plain(shown.printed)}"
        )


def test_a_wrong_result_is_noticed(examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What compares results in the examples does not let everything pass."""
    monkeypatch.chdir(copied(tmp_path) / "append")
    assert "SUCCEEDED" in run_command("dalsegno run ../sql.yaml file=day1.sql")
    assert "2 rows are not as a full computation gives them" in run_command("dalsegno run ../sql.yaml file=check.sql")


@pytest.mark.parametrize("name", CASES)
def test_hostile_data(name: str, examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After every run each target is what a full computation gives, whatever comes."""
    folder = copied(tmp_path) / name
    monkeypatch.chdir(folder)
    with lakeside() as place:
        prove(CASES[name], place)
        for workflow_id in CASES[name].audited:
            found = place.operations.audits.run(AuditRequest(workflow_id))
            assert (found.is_equal, found.cannot_see) == (True, None), found
        # What people are told to check it with agrees.
        if Path("check.sql").exists():
            assert place.sql(Path("check.sql").read_text(encoding="utf-8"))


def test_recipes(examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_files("process-what-changed.md", tmp_path)
    Path("tables.sql").write_text(TABLES, encoding="utf-8")
    with lakeside() as place:
        prove(WORKFLOWS, place)
        # What the page says it needs is seen to: of a target that is not partitioned, no part of a file is replaced.
        with pytest.raises(Exception, match="some, but not all, rows match filter"):
            place.sql(
                "CREATE TABLE lake.media.unpartitioned USING iceberg AS "
                "SELECT /*+ COALESCE(1) */ * FROM VALUES (D1, 1), (NULL, 2) AS t(event_day, seconds);"
                "INSERT INTO lake.media.unpartitioned REPLACE WHERE event_day IS NULL SELECT D1, 1 WHERE false"
            )


@contextmanager
def lakeside() -> Iterator[Lakeside]:
    settings = load()
    with Operations(Store.open(settings.store), settings, local_caller()) as operations:
        yield Lakeside(settings, operations)


def prove(case: Case, place: Lakeside) -> None:
    """By hand and declared, each target has the same rows, and they are what a full computation gives."""
    place.make_tables(case.tables)
    for file in [*case.files, *(["declared.yaml"] if case.declared else [])]:
        place.operations.workflows.push_file(place.settings.root / file)
    both = {**case.full, **(declared(case.full) if case.declared else {})}
    for number, text in enumerate(case.rounds, 1):
        place.sql(text)
        for workflow_id in [*case.runs, *([case.declared] if case.declared else [])]:
            place.run(workflow_id)
        assert not place.differing(both), f"after round {number}"


def declared(full: Mapping[str, str]) -> dict[str, str]:
    """The targets of ``declared.yaml``, and what they should hold."""
    return {re.sub(r"(\w+)$", r"declared_\1", target): query for target, query in full.items()}


def test_hostile_data_from_the_command_line(examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The job between two commands, which knows no workflow: all that changes on two days, and rows without one."""
    monkeypatch.chdir(copied(tmp_path) / "cron-or-airflow")
    case = CASES["cron-or-airflow"]
    with lakeside() as place:
        place.make_tables(case.tables)
        for text in case.rounds[:2]:
            place.sql(text)
            run_program(["./nightly.sh"], "")
            assert not place.differing(case.full)
        # Files may be touched and no row changed.
        Path("nothing.sql").write_text("SELECT NULL::DATE AS event_day WHERE false", encoding="utf-8")
        assert "0 days changed" in run_program([sys.executable, "process.py", "nothing.sql"], "")
        assert not place.differing(case.full)


def test_hostile_data_without_spark(examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(copied(tmp_path) / "without-spark")
    run_program([sys.executable, "data.py", "1"], "")
    rows = [(None, "Ran", 1), (date(2026, 11, 1), None, None), (None, None, None), (date(2026, 11, 1), "Ran", None)]
    for workflow in ("titles.yaml", "without.spark"):
        with Lake.open() as lake:
            table = lake.catalog("lake").pyiceberg.load_table("media.playback")
            columns = dict(zip(("event_day", "title", "member"), zip(*rows, strict=True), strict=True))
            table.append(pa.table({name: list(values) for name, values in columns.items()}, table.schema().as_arrow()))
        assert "✔ write" in run_command(f"dalsegno run {workflow}")
        run_program([sys.executable, "check.py"], "")
        assert "✔ titles_by_day" in run_command("dalsegno run declared.yaml")
        with lakeside() as place:
            assert not place.differing({"lake.media.declared_titles_by_day": "SELECT * FROM lake.media.titles_by_day"})


class Operator:
    """Stands for Airflow's, which is not installed: keeps what it would run."""

    def __init__(self, task_id: str, bash_command: str, skip_on_exit_code: int | None = None, **_others: Any) -> None:
        self.command, self.skips_on = bash_command, skip_on_exit_code
        TASKS[task_id] = self

    def __rshift__(self, following: Operator) -> Operator:
        return following

    def execute(self, **variables: str) -> tuple[int, str]:
        """How the command ends, and the last line it prints, which Airflow hands to the next task."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, **variables}
        done = subprocess.run(
            ["bash", "-c", self.command], env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        return done.returncode, (done.stdout.splitlines() or [""])[-1]


TASKS: dict[str, Operator] = {}


def test_the_commands_of_the_dag(examples: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(copied(tmp_path) / "cron-or-airflow")
    names = ("airflow", "airflow.sdk", "airflow.providers", "airflow.providers.standard")
    bash = "airflow.providers.standard.operators.bash"
    modules = {name: ModuleType(name) for name in (*names, "airflow.providers.standard.operators", bash)}
    vars(modules[bash])["BashOperator"] = Operator
    vars(modules["airflow.sdk"])["DAG"] = lambda *_, **__: nullcontext()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path("airflow_dag.py")

    run_command("dalsegno run ../sql.yaml file=day1.sql")
    code, capture = TASKS["capture"].execute()
    assert code == 0
    assert TASKS["process"].execute(CAPTURE=capture) == (0, "2 days changed")
    assert TASKS["commit"].execute(CAPTURE=capture)[0] == 0
    assert "SUCCEEDED" in run_command("dalsegno run ../sql.yaml file=check.sql")
    assert TASKS["capture"].execute()[0] == TASKS["capture"].skips_on
    assert TASKS["seconds_by_day"].execute(RUN="scheduled")[0] == 0
