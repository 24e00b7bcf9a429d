"""How an attempt of a step ended, as data: who ran it reports, ``plan`` decides what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dalsegno.model.stored_text import readable


class FailureKind(StrEnum):
    """Whose fault it was, which decides whether and how soon it is tried again."""

    #: The job, its input or its code.
    USER = "USER"
    #: A service, a file system, a node: the same job may well succeed next time.
    PLATFORM = "PLATFORM"
    #: It took longer than it may.
    TIMEOUT = "TIMEOUT"
    #: Trying again cannot help.
    FATAL = "FATAL"


@dataclass(frozen=True)
class Succeeded:
    """The job is done; ``outputs`` are plain values by parameter name."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: The capture that is processed now: its checkpoint moves in the transaction that saves the success, or neither.
    commits: str | None = field(default=None, repr=False)
    #: False if there is nothing to do for the steps that follow.
    goes_on: bool = field(default=True, repr=False)


@dataclass(frozen=True)
class Failed:
    """The job is not done. The message says what was expected and what was found."""

    kind: FailureKind
    message: str
    hint: str | None = None
    #: What was set before it failed.
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: Waiting would not help: what went wrong is over.
    at_once: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        # It may quote what a job printed, and must be stored all the same.
        object.__setattr__(self, "message", readable(self.message))
        object.__setattr__(self, "hint", None if self.hint is None else readable(self.hint))


@dataclass(frozen=True)
class Stopped:
    """The job was ended because somebody asked for it."""

    message: str = ""


Outcome = Succeeded | Failed | Stopped
