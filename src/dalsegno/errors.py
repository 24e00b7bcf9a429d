"""Every error dalsegno raises on purpose.

    DalsegnoError
    ├── UserError                  fix the input and try again
    │   ├── SettingsError          the settings file or the environment
    │   ├── UnknownName            a catalog, table, branch, consumer or capture that is not there
    │   └── CaptureSettled         the capture was committed or abandoned before
    ├── DataError                  the tables are not as they must be; nothing was changed
    │   ├── HistoryLost            the range cannot be proven gap-free: expired, rolled back, replaced
    │   ├── UnsupportedChange      the range holds a change that this capture may not deliver
    │   ├── UnsupportedTable       the table uses a feature that cannot be captured safely
    │   ├── CheckpointMoved        somebody else moved the checkpoint first
    │   └── CapturePending         another capture of the same range is under way
    └── PlatformError              a service, a file system or Java; trying again may help

Each message says what was expected and what was found; ``hint`` says what to do, as a command where there is one.
Callers treat the three branches differently, so exit codes and HTTP codes are mapped per branch, at the edges.
"""

from __future__ import annotations


class DalsegnoError(Exception):
    """The root: a sentence for people and, where there is one, the next thing to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

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


class UnknownName(UserError):
    """A catalog, table, branch, consumer or capture that is not there."""


class CaptureSettled(UserError):
    """The capture was committed or abandoned before."""


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

    def __init__(self, message: str, *, capture_id: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.capture_id = capture_id


class PlatformError(DalsegnoError):
    """A service, a file system or Java failed; trying again may help."""
