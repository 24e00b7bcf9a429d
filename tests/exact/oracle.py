"""What the targets must hold once everything up to a checkpoint is processed: each captured row exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.exact.forms import Form, Kind
from tests.exact.tables import Rows, Tables
from tests.exact.wrappings import Wrapping

_ARE_ROWS = (Kind.ROWS, Kind.BRANCH_ROWS, Kind.MADE_ROWS)


class Hole(AssertionError):
    """A row too many, a row too few, or nobody says how to go on."""


@dataclass(frozen=True)
class Truth:
    """What was processed."""

    form: Form
    wrapping: Wrapping
    #: What was captured and committed, as (id, part).
    processed: Sequence[tuple[int, str | None]]
    #: What the sources have now: what replaces whole partitions may have written more than was captured.
    every: Sequence[tuple[int, str | None]]
    #: How many captures were committed, of the first source.
    captures: int

    def rows(self, kind: Kind) -> Rows:
        """Those that a target must have."""
        signs, times = self.wrapping.signs, self.captures * self.wrapping.times
        match kind:
            case Kind.ROWS | Kind.BRANCH_ROWS | Kind.MADE_ROWS:
                return Counter((sign * number, part) for number, part in self.processed for sign in signs)
            case Kind.TOTALS:
                parts = Counter(part for _, part in self.processed)
                return Counter({(part, n * len(signs)): 1 for part, n in parts.items()})
            case Kind.COUNTS:
                return Counter({(len(self.processed) * len(signs),): 1})
            case Kind.TICKS:
                return Counter({(times,): 1})
            case Kind.SEQUENCE:
                return Counter((n + 1,) for n in range(times))
        return Counter()

    def differences(self, tables: Tables) -> list[str]:
        """In words, how targets differ from what they must be; none if they are exact."""
        found: list[str] = []
        for name, kind in tables.targets.values():
            if kind in (Kind.STAGE, Kind.MADE):
                continue
            rows, wanted = tables.read(name, kind), self.rows(kind)
            if kind is Kind.COUNTS:
                rows = Counter({(sum(int(str(row[0])) * times for row, times in rows.items()),): 1})
            if kind in _ARE_ROWS and not self.form.is_rowwise:
                wanted = (wanted | rows) & Counter((number, part) for number, part in self.every)
            found += _unequal(name, rows, wanted)
        return found


def _unequal(name: str, found: Rows, wanted: Rows) -> list[str]:
    more, less = found - wanted, wanted - found
    said = [f"{name} has too many: {dict(more)}"] if more else []
    return said + ([f"{name} lacks: {dict(less)}"] if less else [])
