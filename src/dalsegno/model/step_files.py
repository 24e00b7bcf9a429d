"""Files that steps name, such as ``sql: {file: clean.sql}``, and what a version or a job template keeps of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum


class Unstored(StrEnum):
    """Why the content of a file is not part of a version."""

    #: Its name holds parameters: which file it is, only a run knows.
    PARAMETERS = "parameters"
    #: A jar, an archive or an address.
    REFERENCE = "reference"


@dataclass(frozen=True)
class StepFile:
    """A file that a step or a job template names."""

    #: Empty: the template's.
    step_id: str
    #: Such as ``sql.file``.
    field: str
    #: As it is written; of one that is stored, with ``$$`` resolved.
    name: str
    #: SHA-256 of the content, if that is stored.
    digest: str | None = None
    size: int | None = None
    unstored: Unstored | None = None


def digest_of_content(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
