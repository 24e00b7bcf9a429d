"""Steps that run a shell script or a command."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import ClassVar

from dalsegno.errors import UserError
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields, SourceFile
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.references import as_variables, unreplaced
from dalsegno.steps.supervision import Job

SCRIPT_FILE = "script"
#: Interpreters in which ``-c '. FILE' NAME`` runs FILE with NAME as ``$0``.
_SHELLS = frozenset({"bash", "sh", "dash", "ash", "ksh"})


class ShellRunner(ProcessRunner):
    """``shell: {script: …}``, or ``file``, or ``command``."""

    name: ClassVar[str] = "Shell"
    raw: ClassVar[frozenset[str]] = frozenset({"shell.script"})

    def job(self, work: Work) -> Job:
        fields = Fields(work, "shell")
        folder, variables, arguments = fields.folder(), fields.variables(), fields.texts("args")
        match fields.one_of("script", "file", "command"):
            case "script":
                text = fields.required("script")
                script, referenced = as_variables(text, work.references)
                return command_job(
                    work,
                    "shell",
                    [*interpreter(fields), str(work.folder / SCRIPT_FILE), *arguments],
                    folder=folder,
                    files={SCRIPT_FILE: script},
                    variables={**referenced, **variables},
                    notes=[
                        f"{reference} stands in single quotes, where the shell leaves it as it is: use double quotes"
                        for reference in unreplaced(text, work.references)
                    ],
                )
            case "file":
                source = fields.source("file")
                files, command = source.copies, file_command(interpreter(fields), source, work)
            case _:
                files, command = {}, fields.texts("command")
        return command_job(work, "shell", [*command, *arguments], folder=folder, files=files, variables=variables)


def file_command(words: list[str], source: SourceFile, work: Work) -> list[str]:
    """What runs a file; what was pushed of it finds its own path in ``$0``, where the interpreter is a shell."""
    path = str(source.runnable(work.folder))
    if source.content is None or Path(words[0]).name not in _SHELLS:
        return [*words, path]
    return [*words, "-c", f". {shlex.quote(path)}", str(source.path)]


def interpreter(fields: Fields) -> list[str]:
    """What runs the script: what the step says, else bash, else whatever ``sh`` is. The first error ends it."""
    words = fields.texts("interpreter")
    if len(words) == 1:
        try:
            words = shlex.split(words[0])
        except ValueError as error:
            raise UserError(f"{fields.block}.interpreter is {words[0]!r}: {error}.") from error
    if words:
        return words
    bash = shutil.which("bash")
    return [bash, "-eo", "pipefail"] if bash else ["/bin/sh", "-e"]
