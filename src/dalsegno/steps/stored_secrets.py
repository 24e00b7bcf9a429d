"""Statements as they are stored: a secret is replaced by its place, and put back when the statement is executed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dalsegno.errors import UserError

#: No text that people write has this in it.
_MARK = "\ue000secret\ue001"


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    pattern = _pattern(secrets)
    return pattern.sub(_MARK, text) if pattern else text


def has_secrets(stored: str) -> bool:
    return _MARK in stored


def restored(stored: str, given: str, secrets: Sequence[str]) -> str:
    """A stored statement with the secrets that the same statement has today, in their order."""
    if not has_secrets(stored):
        return stored
    pattern = _pattern(secrets)
    values = pattern.findall(given) if pattern else []
    parts = stored.split(_MARK)
    if len(values) != len(parts) - 1:
        raise UserError("A statement that was begun holds secrets that it is no longer given.")
    return "".join(part + value for part, value in zip(parts, [*values, ""], strict=True))


def _pattern(secrets: Sequence[str]) -> re.Pattern[str] | None:
    # The longest first: one may be a part of another.
    found = sorted({each for each in secrets if each}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, found))) if found else None
