"""A run that processes its sources as a whole again, and replaces what its targets hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dalsegno.model.captures import Capture


@dataclass(frozen=True)
class FullRefresh:
    """What whoever asked for it has allowed."""

    #: Tables to empty although others have written to them, too: ``catalog.namespace.table``.
    empty: frozenset[str] = frozenset()
    #: Steps that write no rows, or replace all of them: what a job of theirs does is not known here.
    trust: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        return {"empty": sorted(self.empty), "trust": sorted(self.trust)}

    @classmethod
    def of_json(cls, stored: Mapping[str, Sequence[str]]) -> Self:
        return cls(frozenset(stored["empty"]), frozenset(stored["trust"]))


def replaces(captures: Iterable[Capture]) -> bool:
    """Whether what is written behind these captures takes the place of what was written before.

    A consumer that has processed a table and takes the whole of it again would write every row twice otherwise,
    whoever asked for the capture.
    """
    return any(
        captured.details.get("is_refresh") or (captured.is_full and not captured.is_first)
        for capture in captures
        for captured in capture.tables
    )
