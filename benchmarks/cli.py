"""How much CPU time commands take, in multiples of ``import sqlalchemy``.

Each command is a process of its own in a project with a SQLite store and local files. The commands take turns, so that
whatever else the machine does slows all of them alike. The last line is JSON: the ratio of medians for each command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyarrow as pa

from dalsegno import Lake

ROUNDS = 9
_DALSEGNO = (sys.executable, "-c", "from dalsegno.cli import main; main()")
_BASE = (sys.executable, "-c", "import sqlalchemy")
_WORKFLOW = """\
Workflow:
  id: greet
  dag: sequential
  jobs:
    - job: {id: hello, type: Shell, shell: {script: echo hello}}
    - job: {id: goodbye, type: Shell, shell: {script: echo goodbye}}
"""
COMMANDS: Mapping[str, str] = {
    "runs": "runs",
    "show": "show greet",
    "logs": "logs greet hello",
    "captures": "captures",
    "checkpoints": "checkpoints list",
    "versions": "versions greet",
    "plan": "plan db.plays --consumer planning",
    # Replaced by one consumer per round: a pending capture is handed out again, which takes less.
    "capture": "capture db.plays --consumer {round}",
    "help": "--help",
}


def main() -> None:
    with TemporaryDirectory() as place, _bytecode():
        folder = Path(place)
        _make_project(folder)
        measured: dict[str, list[float]] = {name: [] for name in ("import sqlalchemy", *COMMANDS)}
        # The first round compiles modules and is not counted.
        for number in range(ROUNDS + 1):
            for name, found in measured.items():
                seconds = _cpu_seconds(_command(name, number), folder)
                if number:
                    found.append(seconds)
    base = median(measured["import sqlalchemy"])
    for name, found in measured.items():
        print(f"{name:<18} {median(found):6.3f} s  {median(found) / base:5.2f}")
    print(json.dumps({name: round(median(measured[name]) / base, 2) for name in COMMANDS}))


def _command(name: str, number: int) -> Sequence[str]:
    if name not in COMMANDS:
        return _BASE
    return (*_DALSEGNO, *COMMANDS[name].format(round=f"round{number}").split())


@contextmanager
def _bytecode() -> Iterator[None]:
    """Let Python keep what it compiled, as it does for users."""
    before = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        yield
    finally:
        if before is not None:
            os.environ["PYTHONDONTWRITEBYTECODE"] = before


def _make_project(folder: Path) -> None:
    """A workflow that ran three times, a table with two snapshots, a committed capture and a pending one."""
    (folder / "dalsegno.toml").touch()
    (folder / "greet.yaml").write_text(_WORKFLOW)
    for _ in range(3):
        _cpu_seconds((*_DALSEGNO, "run", "greet.yaml"), folder)
    rows = pa.table({"id": [1, 2]})
    with Lake.open(folder / "dalsegno.toml") as lake:
        catalog = lake.catalog("lake").pyiceberg
        catalog.create_namespace("db")
        table = catalog.create_table("db.plays", rows.schema)
        table.append(rows)
        lake.commit(lake.capture("db.plays", consumer="daily").id)
        table.append(rows)
        lake.capture("db.plays", consumer="daily")


def _cpu_seconds(command: Sequence[str], folder: Path) -> float:
    """User and system time of a process that must succeed, with those that it waited for."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
    # It was waited for here, to be told what it used.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{(folder / 'output').read_text()}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
