"""What a kind of trigger must have for people: ``lines`` in its module ``cli``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from dalsegno.triggers import part_of


class Lines(Protocol):
    def __call__(self, view: Any, workflow_id: str | None) -> Iterator[str]:
        """The text of a view that ``VIEWS`` made; ``workflow_id`` is None for a trigger from the command line."""


def lines_of(view: Any, workflow_id: str | None) -> Iterator[str]:
    lines: Lines = part_of(view.kind, "cli", "lines")
    return lines(view, workflow_id)
