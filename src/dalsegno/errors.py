"""Every error dalsegno raises on purpose.

    DalsegnoError
    ├── UserError                  fix the input and try again
    │   ├── SettingsError          the settings file or the environment
    │   │   └── StorageRefused     an object store refuses: wrong bucket, region, credentials; or a jar is missing
    │   ├── UnknownName            a catalog, table, consumer, workflow, run … that is not there
    │   ├── NotReached             a step that has not begun
    │   ├── Conflict               the state does not allow it: a run that has ended, a key that was used
    │   ├── Forbidden              the caller lacks the role
    │   ├── InvalidWorkflow        a workflow's text, with everything that is wrong with it
    │   ├── CaptureSettled         the capture was committed or abandoned before
    │   ├── SelError               an expression that cannot be read or evaluated
    │   └── ParamError             a parameter that cannot be set, or has no value
    ├── DataError                  the tables are not as they must be; nothing was changed
    │   ├── HistoryLost            the range cannot be proven gap-free: expired, rolled back, replaced
    │   ├── UnsupportedChange      the range holds a change that this capture may not deliver
    │   ├── UnsupportedTable       the table uses a feature that cannot be captured safely
    │   ├── CheckpointMoved        somebody else moved the checkpoint first
    │   └── CapturePending         another capture of the same range is under way
    └── PlatformError              a service, a file system or Java; trying again may help
        └── StoreFailed            the store's database; the message names it, so it is not for everybody

Each message says what was expected and what was found; ``actions`` say what to do, and ``hint`` says it as commands.
Callers treat the three branches differently, so exit codes and HTTP codes are mapped per branch, at the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.hints import Action, as_commands


class DalsegnoError(Exception):
    """The root: a sentence for people and, where there is one, the next thing to do."""

    def __init__(self, message: str, *, hint: str | None = None, actions: Sequence[Action] = ()) -> None:
        super().__init__(message)
        self.message = message
        #: What to do that is not a command, or goes before one.
        self.advice = hint
        #: The first loses nothing.
        self.actions = tuple(actions)
        #: All of it, with commands to type.
        self.hint = " ".join(filter(None, (hint, as_commands(self.actions)))) or None

    @property
    def code(self) -> str:
        """A stable name for machines."""
        return type(self).__name__

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class UserError(DalsegnoError):
    """Fix the input and try again."""


class SettingsError(UserError):
    """The settings file or the environment is not right."""


class StorageRefused(SettingsError):
    """An object store refuses for a reason that a retry cannot mend."""


class UnknownName(UserError):
    """A catalog, table, branch, consumer or capture that is not there."""


class NotReached(UserError):
    """A step that has not begun, and may never do so."""


class Conflict(UserError):
    """What was asked for does not fit the state that something is in."""


class Forbidden(UserError):
    """The caller lacks the role that this needs."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with a text, and where."""

    message: str
    #: Counted from 1; 0 if what is wrong was not read from a text.
    line: int = 0
    column: int = 0
    #: The way to it, such as ``workflow.jobs[2].timeout``.
    path: str = ""
    hint: str | None = None
    #: It may be meant so.
    is_warning: bool = False

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def located(self, file: str) -> str:
        """One line, as compilers write it: editors jump to the place."""
        where = f"{file}:{self.line}:{self.column}" if self.line else ": ".join(filter(None, (file, self.path)))
        return f"{where}: {'warning: ' if self.is_warning else ''}{self}"


class InvalidWorkflow(UserError):
    """A workflow's text, with everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem], *, file: str = "workflow", unlisted: int = 0) -> None:
        lines = [problem.located(file) for problem in problems]
        if unlisted:
            lines.append(f"{file}: {unlisted} more problems are not listed")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)
        self.file = file


class CaptureSettled(UserError):
    """The capture was committed or abandoned before."""


class SelError(UserError):
    """An expression that cannot be read, or was stopped or refused while it was evaluated."""

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message if line is None else f"line {line}, column {column}: {message}", hint=hint)
        self.line = line
        self.column = column


class ParamError(UserError):
    """A parameter cannot be set, or its value cannot be made."""


class DataError(DalsegnoError):
    """The tables are not as they must be; nothing was changed."""


class HistoryLost(DataError):
    """The range cannot be proven to be gap-free."""


class UnsupportedChange(DataError):
    """The range holds a change that this capture may not deliver."""


class UnsupportedTable(DataError):
    """The table uses a feature that cannot be captured safely."""


class CheckpointMoved(DataError):
    """Somebody else moved the checkpoint first."""


class CapturePending(DataError):
    """Another capture of the same range is under way."""

    def __init__(
        self, message: str, *, capture_id: str, hint: str | None = None, actions: Sequence[Action] = ()
    ) -> None:
        super().__init__(message, hint=hint, actions=actions)
        self.capture_id = capture_id


class PlatformError(DalsegnoError):
    """A service, a file system or Java failed; trying again may help."""


class StoreFailed(PlatformError):
    """The store's database failed. Trying again may help."""
