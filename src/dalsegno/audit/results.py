"""What is asked of an audit, and what it answers: plain data, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dalsegno.audit.comparison import Comparison
from dalsegno.model.tables import TableName


class Basis(StrEnum):
    """By what a target is judged."""

    #: The workflow's own SQL over everything that its runs consumed.
    WORKFLOW_SQL = "workflow_sql"
    #: The SELECT that the workflow names for the table.
    ORACLE = "oracle"
    #: The SELECT of whoever asked.
    QUERY = "query"


#: What nobody can see who runs the same SQL twice.
CANNOT_SEE = (
    "A mistake in the SQL itself is made on both sides, so this audit cannot see it. An independent SELECT can: "
    "write one under 'oracle' in the workflow, or give it as 'query'."
)


@dataclass(frozen=True)
class AuditRequest:
    """What to look at, and how."""

    workflow_id: str
    #: Compare so many partitions of each target, chosen at random.
    sample: int | None = None
    seed: int = 0
    #: Compare these partitions: ``day=2026-01-01``, or ``day=2026-01-01/region=eu``.
    partitions: Sequence[str] = ()
    #: What tells rows apart; by default what the workflow merges by.
    keys: Sequence[str] = ()
    left_out: Sequence[str] = ()
    #: What the target should hold, instead of what the workflow's SQL gives.
    query: str | None = None
    target: str | None = None
    limit: int = 10


@dataclass(frozen=True)
class Culprit:
    """Where a target first was not what it should have been."""

    #: The run that went wrong, as WORKFLOW/NUMBER; or the last one before somebody else's write.
    run: str
    version: int
    #: Whether the run itself wrote what is wrong, rather than somebody else after it.
    is_run: bool
    snapshot_id: str | None
    operation: str | None
    committed_at: str | None
    #: The last run after which all was well; None if no state before can be read.
    last_good_run: str | None
    #: Whether it is certain that all was well before: there was something to compare, or it is the first run.
    is_certain: bool


@dataclass(frozen=True)
class TargetResult:
    table: TableName
    #: The state that was looked at.
    snapshot_id: str | None
    comparison: Comparison
    #: What it was compared with, and if that is a SELECT, as somebody wrote it.
    basis: Basis
    query: str | None
    #: The columns that tell rows apart.
    keys: tuple[str, ...]
    #: The partitions that were looked at; None: all.
    looked_at: tuple[Mapping[str, str | None], ...] | None
    #: Snapshots of others since the last run.
    written_by_others: tuple[str, ...]
    culprit: Culprit | None = None
    #: Of a declared table: the strategies that its runs have taken, and how often.
    strategies: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        return self.comparison.is_equal


@dataclass(frozen=True)
class Source:
    table: TableName
    snapshot_id: str | None


@dataclass(frozen=True)
class Audit:
    """What came of it."""

    workflow_id: str
    #: The version whose SQL was executed.
    version: int
    #: The last run that committed.
    run: str
    runs: int
    is_equal: bool
    sources: tuple[Source, ...]
    targets: tuple[TargetResult, ...]
    notes: tuple[str, ...]
    #: What this audit cannot see; None if every target was compared with an independent SELECT.
    cannot_see: str | None
    #: What could not be removed, for ``dalsegno clean``.
    left_over: tuple[str, ...] = ()
