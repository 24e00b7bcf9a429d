"""The log of an attempt whose job is not a process: what is written there holds no secrets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dalsegno.model.outcomes import Failed, Outcome
from dalsegno.steps.supervision import shown_forms


class AttemptLog:
    """Written to by those who have no supervisor to do it."""

    def __init__(self, path: Path, secrets: Iterable[str], *, limit: int) -> None:
        self._path = path
        #: How many bytes are kept.
        self._limit = limit
        # The longest first: one may be part of another.
        self._secrets = sorted({form for secret in secrets for form in shown_forms(secret)}, key=len, reverse=True)

    def note(self, text: str) -> None:
        self.write(f"[dalsegno] {text}")

    def write(self, text: str) -> None:
        """What a full disk does not take is lost: a statement that was executed must not be executed twice for it."""
        line = (self.masked(text).rstrip("\n") + "\n").encode(errors="replace")
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                room = self._limit - os.fstat(file).st_size
                if len(line) > room >= 0:
                    end = f"\n[dalsegno] the log is at its limit of {self._limit:,} bytes: the rest is left out\n"
                    line, room = line[:room] + end.encode(), len(line)
                if room >= 0:
                    os.write(file, line)
            finally:
                os.close(file)

    def masked_outcome(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Failed):
            return outcome
        hint = outcome.hint and self.masked(outcome.hint)
        return replace(outcome, message=self.masked(outcome.message), hint=hint)

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
