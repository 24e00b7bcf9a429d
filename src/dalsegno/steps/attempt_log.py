"""The log of an attempt whose job is not a process: what is written there holds no secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dalsegno.model.outcomes import Failed, Outcome
from dalsegno.steps.supervision import shown_forms


class AttemptLog:
    """Written to by those who have no supervisor to do it."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._path = path
        # The longest first: one may be part of another.
        self._secrets = sorted({form for secret in secrets for form in shown_forms(secret)}, key=len, reverse=True)

    def note(self, text: str) -> None:
        self.write(f"[dalsegno] {text}")

    def write(self, text: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(self.masked(text).rstrip("\n") + "\n")

    def masked_outcome(self, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Failed):
            return outcome
        hint = outcome.hint and self.masked(outcome.hint)
        return replace(outcome, message=self.masked(outcome.message), hint=hint)

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
