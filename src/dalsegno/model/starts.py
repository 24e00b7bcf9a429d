"""Where a consumer's first capture begins, and how much one capture takes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from dalsegno.clock import to_millis
from dalsegno.errors import UserError


@dataclass(frozen=True)
class Earliest:
    """All that was ever added, from the first snapshot on."""


@dataclass(frozen=True)
class Latest:
    """Only what comes from now on."""


@dataclass(frozen=True)
class Full:
    """The whole table as it is now, then what comes."""


@dataclass(frozen=True)
class AfterSnapshot:
    """What was added after a snapshot."""

    snapshot_id: int


@dataclass(frozen=True)
class Since:
    """What was added after a moment."""

    timestamp_ms: int


Start = Earliest | Latest | Full | AfterSnapshot | Since


@dataclass(frozen=True)
class Bound:
    """How much of a table one capture takes at most; what comes later is left for the next."""

    #: Those that change rows: the others cost nothing.
    snapshots: int | None = None
    #: Of the files that they added, as their summaries say.
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("max_snapshots", self.snapshots), ("max_bytes", self.bytes)):
            if most is not None and most < 1:
                raise UserError(f"{name} is {most}, expected a whole number above 0.")


#: However much there is.
UNBOUNDED = Bound()

_WORDS: dict[str, Start] = {"earliest": Earliest(), "latest": Latest(), "full": Full()}


def parse_end(text: str) -> AfterSnapshot | Since:
    """Read where a range ends: a snapshot's id or a moment."""
    end = parse_start(text)
    if isinstance(end, AfterSnapshot | Since):
        return end
    raise UserError(f"{text!r} cannot be an end: expected a snapshot's id, or a moment such as 2026-11-15T08:00Z.")


def parse_start(text: str) -> Start:
    """Read ``earliest``, ``latest``, ``full``, a snapshot's id or a moment such as 2026-11-15T08:00Z."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if word.isdecimal():
        return AfterSnapshot(int(word))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UserError(
            f"{text!r} cannot be a start: expected earliest, latest, full, a snapshot's id, or a moment "
            "such as 2026-11-15 or 2026-11-15T08:00:00Z (UTC unless it says otherwise)."
        ) from None
    return Since(to_millis(moment if moment.tzinfo else moment.replace(tzinfo=UTC)))
