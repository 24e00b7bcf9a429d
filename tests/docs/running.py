"""Run a page from top to bottom in a folder of its own, and compare what is printed with what the page shows."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dalsegno.cli.app import app
from dalsegno.settings import load
from tests.docs.givens import GIVENS
from tests.docs.markdown import Block, Remark, commands, parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SNAPSHOT = re.compile(r"\b\d{14,19}\b")
#: What differs from run to run, and what stands for it.
_VARYING = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (_SNAPSHOT.pattern, "SNAPSHOT"),
    (r"[\d.]+ (bytes|kB)", "SIZE"),
    (r"\b\d+% less", "LESS"),
    (r"\b\d\d:\d\d:\d\d\b", "CLOCK"),
    (r"\b(\d+ min )?[\d.]+ (s|ms|min)\b", "TIME SPAN"),
    (r"[\w.-]+@[\w.-]+", "SOMEBODY"),
    (r"(icdc\.\w+)_[a-hjkmnp-z2-9]{10}\b", r"\1_CAPTURE"),
    (r"\bcapture [a-hjkmnp-z2-9]{10}\b", "capture CAPTURE"),
    (r"█+", ""),
    (r"[ ─]+", " "),
)
#: What pages call the folder they work in, where a command prints it.
FOLDER = "/srv/lake"
_CAPTURE = re.compile(r"^  capture +(\w+), kept until", re.MULTILINE)


@dataclass(frozen=True)
class Shown:
    """One thing that was run: what the page says it prints, and what it printed."""

    line: int
    what: str
    expected: str
    printed: str


@dataclass
class Run:
    """A page on its way down."""

    spark: SparkSession | None = None
    #: The id of a capture on the page → the id that it has in this run.
    ids: dict[str, str] = field(default_factory=dict)
    #: The same for snapshots, which a page may type after it has shown them.
    snapshots: dict[str, str] = field(default_factory=dict)

    def page(self, text: str) -> Iterator[Shown]:
        """Run every block in the current folder; each thing that should print something, with what it printed."""
        remark: Remark | None = None
        last: tuple[Block, str] | None = None
        for part in parts(text):
            if isinstance(part, Remark):
                if part.kind == "given":
                    GIVENS[part.text]()
                else:
                    remark = part
                continue
            match part.language, remark:
                case _, Remark("not run"):
                    last = None
                case _, Remark("file", name):
                    Path(name).write_text(part.text + "\n", encoding="utf-8")
                    last = None
                case "console", _:
                    yield from self._console(part)
                case "python", Remark("with", "spark"):
                    last = part, self._with_spark(part)
                case "python", _:
                    last = part, run_program([sys.executable, "-"], part.text)
                case "sh", _:
                    last = part, run_program(["sh", "-eu"], part.text)
                case "toml", _:
                    load_settings(part.text)
                case "text", _ if last is not None:
                    yield Shown(part.line, last[0].text, part.text, last[1])
            remark = None

    def _console(self, block: Block) -> Iterator[Shown]:
        for command in commands(block):
            typed = command.text
            for shown, real in (self.ids | self.snapshots).items():
                typed = typed.replace(shown, real)
            printed = run_command(typed)
            for shown, real in zip(_CAPTURE.findall(command.output), _CAPTURE.findall(printed), strict=False):
                self.ids[shown] = real
            if "…" not in command.output.splitlines():
                pairs = zip(_SNAPSHOT.findall(command.output), _SNAPSHOT.findall(printed), strict=False)
                self.snapshots.update(pairs)
            yield Shown(block.line, typed, command.output, printed)

    def _with_spark(self, block: Block) -> str:
        assert self.spark is not None
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(block.text, f"line {block.line}", "exec"), {"spark": self.spark})
        return out.getvalue()

    def plain(self, text: str) -> str:
        """The text without what differs from run to run."""
        text = text.replace(str(Path.cwd()), FOLDER)
        for shown, real in self.ids.items():
            text = text.replace(shown, "CAPTURE").replace(real, "CAPTURE")
        for pattern, word in _VARYING:
            text = re.sub(pattern, word, text)
        return "\n".join(line.strip() for line in text.strip().splitlines())

    def agrees(self, shown: Shown) -> bool:
        """Whether the page tells the truth; a line of `…` stands for any lines, or for none."""
        lines = self.plain(shown.expected).splitlines()
        pattern = "".join(r"(?:.*\n)?" if line == "…" else re.escape(f"{line}\n") for line in lines)
        return re.fullmatch(pattern or r"\n?", f"{self.plain(shown.printed)}\n", re.DOTALL) is not None


def run_command(text: str) -> str:
    """What a command prints; ours run in this process, which is seconds faster."""
    if not text.startswith("dalsegno ") or re.search(r"[|>$&;]", text):
        return run_program(["sh", "-c", text], "", check=False)
    # With bytes below it, as a real one: logs are not always text.
    printed = io.BytesIO()
    out = io.TextIOWrapper(printed, encoding="utf-8", write_through=True)
    # What is printed is what the page shows; refusals are part of it.
    with redirect_stdout(out), redirect_stderr(out), suppress(SystemExit):
        app(shlex.split(text)[1:], prog_name="dalsegno")
    return printed.getvalue().decode()


def run_program(command: list[str], text: str, *, check: bool = True) -> str:
    """What a program prints that is given the text."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "POLARS_ICEBERG_PLANNER": "pyiceberg"}
    done = subprocess.run(
        command, input=text, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0 or not check, done.stdout
    return done.stdout


def load_settings(text: str) -> None:
    """Settings that a page shows must be accepted; the variables they name are made up."""
    file = Path("shown.toml")
    file.write_text(text, encoding="utf-8")
    load(file, environment=dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "secret"))
