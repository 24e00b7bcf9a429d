"""What a capture will cost, how late its rows are, and what will expire when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dalsegno.clock import from_millis, to_millis
from dalsegno.model.snapshots import Snapshot

_DAY = timedelta(days=1)
_DEFAULT_SNAPSHOT_AGE_MS = 5 * 24 * 3600 * 1000
#: The days at which a new bar of the histogram begins.
_STEPS = (0, 1, 2, 3, 4, 8, 15, 31)


@dataclass(frozen=True)
class Cost:
    """What must be read. None: the metadata does not say."""

    files: int | None
    rows: int | None
    bytes: int | None

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """All of them together; what one does not say, the total does not say."""
        listed = list(costs)
        return cls(
            _sum(cost.files for cost in listed),
            _sum(cost.rows for cost in listed),
            _sum(cost.bytes for cost in listed),
        )


@dataclass(frozen=True)
class LatenessBar:
    """Rows that arrived that many days after their event."""

    label: str
    rows: int


@dataclass(frozen=True)
class Expiry:
    """Until when the unprocessed history is safe."""

    #: The table's own rule, which any expiry job may apply.
    table_keeps_days: float
    #: When the oldest unprocessed snapshot may go by that rule.
    first_may_expire_at: datetime | None
    #: When the newest may.
    last_may_expire_at: datetime | None
    #: How many of them the consumer's pin holds, and until when, whatever the rule says.
    pinned_snapshots: int
    pinned_until: datetime | None


def lateness(files: Iterable[tuple[int, int, int]], lookback_days: int) -> tuple[list[LatenessBar], int]:
    """Bars over (commit, oldest event, rows) of files in milliseconds, and the rows that a lookback would miss.

    A file counts with its oldest row, so a row is at most as late as its bar says.
    """
    steps = sorted({*_STEPS, lookback_days + 1})
    counts = dict.fromkeys(steps, 0)
    missed = 0
    for commit_ms, event_ms, rows in files:
        days = max((_midnight(commit_ms) - _midnight(event_ms)) // _DAY, 0)
        counts[max(step for step in steps if step <= days)] += rows
        if days > lookback_days:
            missed += rows
    ends = [*steps[1:], None]
    return [LatenessBar(_label(step, end), counts[step]) for step, end in zip(steps, ends, strict=True)], missed


def lookback_start_ms(now: datetime, days: int) -> int:
    """The beginning of the first day that a lookback of that many days reads again, today included."""
    return to_millis(_midnight(to_millis(now)) - timedelta(days=days))


def expiry(
    unprocessed: Sequence[Snapshot],
    properties: Mapping[str, str],
    pinned_ids: Collection[int],
    pinned_until_ms: int | None,
) -> Expiry:
    """When the snapshots (oldest first) may expire."""
    age = timedelta(milliseconds=int(properties.get("history.expire.max-snapshot-age-ms", _DEFAULT_SNAPSHOT_AGE_MS)))
    kept = int(properties.get("history.expire.min-snapshots-to-keep", 1))
    # The newest ones are kept by number; the head itself always.
    mortal = unprocessed[: max(len(unprocessed) - kept, 0)]
    ends = [from_millis(snapshot.timestamp_ms) + age for snapshot in mortal]
    return Expiry(
        age / _DAY,
        ends[0] if ends else None,
        ends[-1] if ends else None,
        sum(snapshot.id in pinned_ids for snapshot in unprocessed),
        from_millis(pinned_until_ms) if pinned_until_ms is not None else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _midnight(millis: int) -> datetime:
    return from_millis(millis).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _label(step: int, end: int | None) -> str:
    if step == 0 and end == 1:
        return "same day"
    if end is None:
        return f"{step} days or more"
    last = end - 1
    return f"{step} day{'s' if step > 1 else ''}" if step == last else f"{step} to {last} days"
