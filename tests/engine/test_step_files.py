"""Files that steps name are part of a version: a run uses what was pushed, wherever it runs."""

from __future__ import annotations

import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from dalsegno.errors import InvalidWorkflow
from dalsegno.model.step_files import StepFile, Unstored
from dalsegno.operations.pushed import Pushed
from dalsegno.operations.step_files import NOTEBOOK_BYTES
from dalsegno.spec.documents import BYTES
from dalsegno.store import run_queries, workflows
from dalsegno.store.file_tables import file_contents
from tests.engine.support import FAILED, SUCCEEDED, Place


def job(kind: str, block: str) -> str:
    """A workflow of one step, which is tried once."""
    step = f"id: a, type: {kind}, retry_policy: {{error_retry_limit: 0}}, {block}"
    return f"Workflow: {{id: w, params: {{word: say}}, jobs: [{{job: {{{step}}}}}]}}\n"


SHELL = job("Shell", "shell: {file: say.sh}")


def push(place: Place, text: str = SHELL, **files: str) -> Pushed:
    """Push the workflow with these files beside it; their names have underscores for dots."""
    for name, content in files.items():
        (place.folder / name.replace("_", ".")).write_text(content)
    return place.operations.workflows.push(text, file="w.yaml")


def files(place: Place, workflow_id: str = "w") -> list[StepFile]:
    """Those of the newest version."""
    return list(place.operations.workflows.versions(workflow_id)[0].files)


def log(place: Place, step: str = "a", run: str = "w") -> str:
    return place.operations.runs.log(run, step).text()


def contents(place: Place) -> int:
    with place.operations.store.database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(file_contents)) or 0


def test_a_run_uses_what_was_pushed(either_place: Place) -> None:
    place = either_place
    assert push(place, say_sh="echo first; echo $0").version == 1
    (place.folder / "say.sh").write_text("echo second")
    assert place.run("w").status is SUCCEEDED
    assert log(place) == f"first\n{place.folder / 'say.sh'}\n"
    (place.folder / "say.sh").unlink()
    assert place.run("w").status is SUCCEEDED
    assert log(place).startswith("first\n")


def test_another_content_is_another_version(either_place: Place) -> None:
    place = either_place
    first = push(place, say_sh="echo first")
    assert (first.version, first.is_new) == (1, True)
    assert (again := push(place)).version == 1
    assert not again.is_new
    assert push(place, say_sh="echo second").version == 2
    # Back to the first one: the content is there already.
    assert push(place, say_sh="echo first").version == 3
    assert contents(place) == 2
    [before, _, after] = [each.files for each in place.operations.workflows.versions("w")]
    assert before == after
    assert [(each.step_id, each.field, each.name, each.size) for each in after] == [("a", "shell.file", "say.sh", 10)]


def test_a_node_that_does_not_have_the_file(either_place: Place, tmp_path: Path) -> None:
    text = "Workflow: {id: w, jobs: [{job: {id: a, type: Python, python: {file: /%s}}}]}\n"
    file = either_place.folder / "say.py"
    file.write_text("print('here', __file__)")
    either_place.operations.workflows.push(text % str(file).lstrip("/"))
    file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = Place.at(elsewhere, either_place.operations.settings.store)
    assert place.run("w").status is SUCCEEDED
    assert log(place) == f"here {file}\n"
    place.operations.close()


def test_a_restart_uses_the_files_of_its_version(place: Place) -> None:
    push(place, say_sh="echo first; test -e ready")
    assert place.run("w").status is FAILED
    push(place, say_sh="echo second")
    (place.folder / "ready").touch()
    place.finish(place.operations.runs.restart("w/1"))
    assert log(place, run="w/1") == "first\n"
    assert place.run("w").version == 2
    assert log(place) == "second\n"


def test_a_python_file_imports_from_its_folder_and_traces_show_its_name(place: Place) -> None:
    folder = place.folder / "jobs"
    folder.mkdir()
    (folder / "http.py").write_text("WORD = 'beside'")
    (folder / "load.py").write_text(
        "import http, sys\n"
        "print(http.WORD, __file__, __name__, sys.argv)\n"
        "def fail():\n"
        "    raise ValueError('as it was pushed')\n"
        "fail()\n"
    )
    text = job("Python", "python: {file: jobs/load.py, args: [x, --y]}")
    push(place, text)
    (folder / "load.py").write_text("\n" * 9)
    assert place.run("w").status is FAILED
    file = folder / "load.py"
    shown, _, trace = log(place).partition("\n")
    assert shown == f"beside {file} __main__ {[str(file), 'x', '--y']}"
    assert trace.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{file}", line 5, in <module>',
        "    fail()",
        f'  File "{file}", line 4, in fail',
        "    raise ValueError('as it was pushed')",
        "ValueError: as it was pushed",
    ]


def test_a_python_file_is_the_main_module(place: Place) -> None:
    """What is pickled by name is found, and exit codes and hooks are the script's own."""
    text = job("Python", "python: {file: main.py}")
    code = (
        "from __future__ import annotations\n"
        "import pickle, sys\n"
        "class Thing: pass\n"
        "assert type(pickle.loads(pickle.dumps(Thing()))) is Thing\n"
        "assert sys.modules['__main__'].Thing is Thing\n"
        "print(sorted(name for name in globals() if not name.startswith('__')))\n"
        "sys.exit(3)\n"
    )
    push(place, text, main_py=code)
    (place.folder / "main.py").unlink()
    assert place.run("w").status is FAILED
    assert log(place) == "['Thing', 'annotations', 'pickle', 'sys']\n"
    assert "exit code 3" in str(place.steps("w")["a"].failure)


def test_shell_files_find_what_is_beside_them(place: Place) -> None:
    (place.folder / "jobs").mkdir()
    (place.folder / "jobs" / "lib.sh").write_text("word=beside")
    (place.folder / "jobs" / "load.sh").write_text(
        'source "$(dirname "$0")/lib.sh"\necho "$word $# $1"\nfalse | true\necho not reached\n'
    )
    text = job("Shell", "shell: {file: jobs/load.sh, args: [a b]}")
    push(place, text)
    (place.folder / "jobs" / "load.sh").unlink()
    assert place.run("w").status is FAILED
    assert log(place) == "beside 1 a b\n"


def test_other_interpreters_get_a_copy(place: Place) -> None:
    text = job("Shell", "shell: {file: say.py, interpreter: python3}")
    push(place, text, say_py="print('first')")
    (place.folder / "say.py").write_text("print('second')")
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "first\n"


def test_sql_files(tmp_path: Path) -> None:
    (tmp_path / "dalsegno.toml").write_text(f'[connections.db]\nurl = "sqlite:///{tmp_path}/data.db"\n')
    place = Place.at(tmp_path)
    text = job("SQL", "sql: {connection: db, file: make.sql}")
    push(place, text, make_sql="\ufeffCREATE TABLE first (id)")
    (tmp_path / "make.sql").write_text("CREATE TABLE second (id)")
    assert place.run("w").status is SUCCEEDED
    with sqlite3.connect(tmp_path / "data.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("first",)]
    place.operations.close()


def test_a_name_with_parameters_is_read_at_run_time(place: Place) -> None:
    text = job("Shell", "shell: {file: '${word}.sh'}")
    pushed = push(place, text)
    [warning] = pushed.warnings
    assert warning.is_warning
    assert (warning.line, warning.column) == (1, text.index("'${word}") + 1)
    assert "shell.file is only known at run time" in warning.message
    assert files(place) == [StepFile("a", "shell.file", "${word}.sh", unstored=Unstored.PARAMETERS)]
    for word in ("first", "second"):
        (place.folder / "say.sh").write_text(f"echo {word}")
        assert place.run("w").status is SUCCEEDED
        assert log(place) == f"{word}\n"
    (place.folder.parent / "outside.sh").write_text("echo outside")
    assert place.run("w", word="../outside").status is FAILED


def test_a_parameter_does_not_make_another_steps_file_its_own(place: Place) -> None:
    """A name that only a run knows is always read at run time, also if the version has a file that is called so."""
    text = """
Workflow:
  id: w
  params: {word: say}
  jobs:
    - job: {id: a, type: Shell, shell: {file: say.sh}}
    - job: {id: b, type: Shell, shell: {file: '${word}.sh'}}
"""
    push(place, text, say_sh="echo first")
    (place.folder / "say.sh").write_text("echo second")
    assert place.run("w").status is SUCCEEDED
    assert (log(place, "a"), log(place, "b")) == ("first\n", "second\n")


def test_a_dollar_sign_in_a_name(place: Place) -> None:
    (place.folder / "a$b.sh").write_text("echo first")
    push(place, SHELL.replace("say.sh", "'a$$b.sh'"))
    (place.folder / "a$b.sh").unlink()
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "first\n"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("Workflow:\n  id: w\n  jobs:\n    - job:\n        id: a\n        type: Shell\n        shell:\n"
         "          file: no.sh\n", 8, 17),
        ("id: w\nsteps:\n  - name: a\n    type: shell\n    file: no.sh\n", 5, 11),
        ('{"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "Shell", "params":\n'
         '{"shell": {"type": "MAP", "value": {"file":\n{"type": "STRING", "value": "no.sh"}}}}}}]}}', 3, 29),
        ('{"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "Shell", "params":\n'
         '{"shell": {"type": "STRING_MAP", "value": {"file": "no.sh"}}}}}]}}', 2, 52),
        ("Workflow:\n  id: w\n  jobs:\n    - foreach:\n        id: each\n        params: {i: [1]}\n        jobs:\n"
         "          - job: {id: a, type: Spark, spark: {script: no.sql}}\n", 8, 55),
    ],
)  # fmt: skip
def test_a_missing_file_is_told_with_its_place(place: Place, text: str, line: int, column: int) -> None:
    with pytest.raises(InvalidWorkflow, match=rf"w.yaml:{line}:{column}: .*there is no file {place.folder}/no"):
        push(place, text)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("sql: {file: x}", b"SELECT '\xe9'", "is not UTF-8"),
        ("sql: {file: x}", b"SELECT '\0'", "holds a NUL"),
        ("sql: {file: x}", b"x" * (BYTES + 1), "is larger than 1,048,576 bytes"),
        ("notebook: {input_path: x}", b"x" * (NOTEBOOK_BYTES + 1), "is larger than 10,485,760 bytes"),
        ("python: {file: ../x}", b"", "is outside of"),
        ("python: {file: .}", b"", "there is no file"),
    ],
)
def test_files_that_cannot_be_stored(place: Place, file: str, content: bytes, expected: str) -> None:
    (place.folder / "x").write_bytes(content)
    kind = file.partition(":")[0]
    with pytest.raises(InvalidWorkflow, match=expected):
        push(place, job(kind, file))
    with pytest.raises(Exception, match="There is no workflow"):
        place.operations.workflows.versions("w")


def test_the_largest_file(place: Place) -> None:
    push(place, say_sh="#" * (BYTES - 8) + "\necho ok")
    (place.folder / "say.sh").unlink()
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "ok\n"


def test_binary_files_stay_references(place: Place) -> None:
    with zipfile.ZipFile(place.folder / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "print('from the archive')")
    pushed = push(place, job("Python", "python: {file: app.pyz}"))
    assert "app.pyz is not UTF-8 text" in pushed.warnings[0].message
    assert [(each.digest, each.unstored) for each in files(place)] == [(None, Unstored.REFERENCE)]
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "from the archive\n"


def test_jars_and_addresses_are_listed_as_references(place: Place) -> None:
    push(
        place,
        """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Java, java: {jar: lib/a.jar, classpath: [lib/b.jar, classes]}}
    - job: {id: b, type: Spark, spark: {jar: 's3://code/c.jar'}}
    - job: {id: c, type: Notebook, notebook: {input_path: 's3://code/d.ipynb'}}
""",
    )
    assert {each.name for each in files(place)} == {
        "lib/a.jar",
        "lib/b.jar",
        "classes",
        "s3://code/c.jar",
        "s3://code/d.ipynb",
    }
    assert {each.unstored for each in files(place)} == {Unstored.REFERENCE}


TEMPLATE = """
definition:
  job_type: speak
  step_type: Shell
  version: %s
  params:
    shell: {type: MAP, value: {file: {type: STRING, value: say.sh}}}
"""
SPEAKS = "Workflow: {id: w, jobs: [{job: {id: a, type: speak, type_version: v1}}]}\n"


def test_files_of_job_templates(either_place: Place) -> None:
    place = either_place
    (place.folder / "say.sh").write_text("echo first")
    place.operations.templates.push(TEMPLATE % "v1")
    (place.folder / "say.sh").write_text("echo second")
    push(place, SPEAKS)
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "first\n"
    # As with its parameters: pushing the template changes the workflows that use it.
    place.operations.templates.push(TEMPLATE % "v1")
    (place.folder / "say.sh").unlink()
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "second\n"
    assert contents(place) == 1
    place.operations.templates.delete("speak")
    assert contents(place) == 0


def test_a_step_has_the_last_word_over_its_template(place: Place) -> None:
    (place.folder / "say.sh").write_text("echo of template")
    place.operations.templates.push(TEMPLATE % "v1")
    step = "type: speak, type_version: v1, shell: {file: say.sh}"
    push(place, f"Workflow: {{id: w, jobs: [{{job: {{id: a, {step}}}}}]}}\n", say_sh="echo of step")
    place.operations.templates.push(TEMPLATE % "v1")
    (place.folder / "say.sh").write_text("echo of nobody")
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "of step\n"
    # A version that has a content keeps it, whatever becomes of templates.
    place.operations.templates.delete("speak")
    assert contents(place) == 1


def test_inherited_files(place: Place) -> None:
    (place.folder / "say.sh").write_text("echo of parent")
    place.operations.templates.push(TEMPLATE % "v1")
    child = "definition: {job_type: shout, step_type: Shell, inherit_from: {speak: v1}, params: {}}"
    place.operations.templates.push(child)
    (place.folder / "say.sh").unlink()
    push(place, "Workflow: {id: w, jobs: [{job: {id: a, type: shout}}]}\n")
    assert place.run("w").status is SUCCEEDED
    assert log(place) == "of parent\n"


def test_a_template_whose_file_is_missing(place: Place) -> None:
    with pytest.raises(InvalidWorkflow, match=r"t.yaml:7:60: shell.file: there is no file"):
        place.operations.templates.push(TEMPLATE % "v1", file="t.yaml")


def test_versions_of_before_read_the_file(place: Place) -> None:
    """Their files were never stored."""
    push(place, say_sh="echo first")
    definition: dict[str, Any]
    with place.operations.store.database.writing() as connection:
        definition = dict(run_queries.version_row(connection, "w", 1)["definition"])  # type: ignore[index]
        workflows.add_version(connection, "w", definition, is_active=True, by="ada", now=place.operations.clock())
    (place.folder / "say.sh").write_text("echo second")
    assert place.run("w").version == 2
    assert log(place) == "second\n"
    assert push(place).version == 3
