"""A proof: a declared table was refreshed step by step on clones, and compared with its full SELECT after each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from dalsegno.model.refreshes import Cost
from dalsegno.model.tables import TableName


class Outcome(StrEnum):
    """What came of one step of a proof."""

    EQUAL = "equal"
    DIFFERS = "differs"
    #: The refresh stopped before it wrote anything, as it would in a run.
    REFUSED = "refused"


@dataclass(frozen=True)
class ProofStep:
    """One change of the sources, and the refresh that followed it."""

    #: What happened, in words.
    change: str
    #: In one word or two: ``append``, ``delete``, ``late rows``; the same change always has the same.
    kind: str
    #: The source that changed; None at the beginning, and if all of them did.
    source: TableName | None
    #: Whether it is made up, rather than taken from the history of a source.
    is_synthetic: bool
    #: Empty if there was nothing to refresh.
    strategy: str
    why: str
    #: Of the target, after the refresh.
    rows: int
    outcome: Outcome
    #: Of the refresh.
    cost: Cost
    #: Of the SELECT over all rows of the sources.
    full_cost: Cost
    #: Why the refresh was refused.
    refusal: str | None = None


@dataclass(frozen=True)
class ProofDifference:
    """Where a target first was not what its SELECT gives."""

    #: The number of the step, from 1.
    step: int
    strategy: str
    missing_rows: int
    superfluous_rows: int
    #: The first that differ: ``kind``, ``expected`` and ``found``.
    rows: tuple[Mapping[str, Any], ...]
    #: What the refresh executed, over clones.
    sql: str
    #: What Spark said, if the SQL failed.
    failure: str | None = None


@dataclass(frozen=True)
class Proof:
    """What a replay of the sources' history showed."""

    target: TableName
    sources: tuple[TableName, ...]
    #: Of the SELECT and the options of its step.
    query_digest: str
    at: datetime
    by: str
    is_proven: bool
    #: Why it is proven, or why not.
    verdict: str
    steps: tuple[ProofStep, ...]
    #: How often each kind of change was in the history.
    seen: Mapping[str, int]
    #: How often each kind of change was made up.
    made_up: Mapping[str, int]
    #: Sources that have fewer than two snapshots, so no change of theirs could be replayed.
    without_history: tuple[TableName, ...]
    difference: ProofDifference | None = None
    #: What could not be removed, and is left for the next clean-up.
    left_over: tuple[str, ...] = ()
