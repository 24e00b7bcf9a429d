"""Steps that run Python, by default the one that runs dalsegno."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import ClassVar

from dalsegno.errors import UserError
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields, SourceFile
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.supervision import Job

SCRIPT_FILE = "script.py"
#: Runs what was pushed of a file as if it were the file.
LAUNCHER = Path(__file__).with_name("python_launcher.py")


class PythonRunner(ProcessRunner):
    """``python: {script: …}``, or ``file``, or ``module``."""

    name: ClassVar[str] = "Python"
    raw: ClassVar[frozenset[str]] = frozenset({"python.script"})

    def job(self, work: Work) -> Job:
        fields = Fields(work, "python")
        folder = fields.folder()
        files: dict[str, str] = {}
        match fields.one_of("script", "file", "module"):
            case "script":
                files = {SCRIPT_FILE: pure_script(fields.required("script"), work)}
                what = [str(work.folder / SCRIPT_FILE)]
            case "file":
                source = fields.source("file")
                files, what = source.copies, script_words(source, work)
            case _:
                what = ["-m", module_name(fields.required("module"))]
        interpreter = fields.text("interpreter")
        return command_job(
            work,
            "python",
            [interpreter or sys.executable, *what, *fields.texts("args")],
            folder=folder,
            files=files,
            variables={**({} if interpreter else import_path(str(folder))), **fields.variables()},
        )


def script_words(source: SourceFile, work: Work) -> list[str]:
    """What tells Python to run a file: beside it are the modules that it imports, whatever was pushed of it."""
    if source.content is None:
        return [str(source.path)]
    return [str(LAUNCHER), str(source.runnable(work.folder)), str(source.path)]


def import_path(*folders: str) -> dict[str, str]:
    """Where our own Python finds modules: what it was told itself, after the folders."""
    told = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    # The job may run elsewhere.
    return {"PYTHONPATH": os.pathsep.join([*folders, *(str(Path(path).absolute()) for path in told)])}


def pure_script(script: str, work: Work) -> str:
    """The script, unless it expects values to be pasted into it, where they could become code."""
    for written, name in re.findall(r"\$\{(([\w.-]+)(?:\([^{}]*\))?)\}", script):
        if written in work.references:
            raise UserError(
                f"python.script holds ${{{written}}}, but values are not pasted into code.",
                hint=f"Write: from dalsegno import job; job.param({name!r})",
            )
    return script


def module_name(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")):
        raise UserError(f"python.module is {text!r}, expected a module's name such as package.module.")
    return text
