"""The snapshots of a table. What cannot be read raises: it is never taken for empty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MAIN = "main"
#: Branches that keep history for consumers; nobody writes to them.
_PINS = "dalsegno_"


class TargetError(RuntimeError):
    """Nobody can tell whether a table was written, or a write left no stamp."""


@dataclass(frozen=True)
class Snapshot:
    id: int
    parent: int | None
    timestamp_ms: int
    summary: Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """What a table says about its past."""

    name: str
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    #: Of each branch that people write to.
    heads: Mapping[str, int] = field(default_factory=dict)
    #: Snapshots that were once the newest of ``main``.
    published: frozenset[int] = frozenset()

    def line(self, head: int) -> Iterator[Snapshot]:
        """From this snapshot back to the first, or to the first that has expired."""
        snapshot = self.snapshots.get(head)
        while snapshot is not None:
            yield snapshot
            snapshot = None if snapshot.parent is None else self.snapshots.get(snapshot.parent)


@contextmanager
def reading(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Py4J says first which call failed, then why.
        lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("An error occurred")]
        because = lines[0] if lines else type(error).__name__
        hint = ""
        if "TABLE_OR_VIEW_NOT_FOUND" in because:
            hint = " If it was renamed, use its new name. If this step creates it, say missing_ok=True."
        raise TargetError(
            f"{name} could not be read, so it is unknown whether it was written before: {because}{hint}"
        ) from error


def without_pins(heads: Mapping[str, int]) -> dict[str, int]:
    return {name: head for name, head in heads.items() if not name.startswith(_PINS)}
