"""The change of a query that is linear in some reads, as queries to be added up and taken away.

One read after the other gets what changed of it: those before it are read as they are after the range, those behind
it as they were before, and other sides of a UNION ALL not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.linear import Siblings
from dalsegno.rewrite.ranges import changed_range, where_all
from dalsegno.rewrite.relations import Occurrence, Scan
from dalsegno.rewrite.tables import quoted
from dalsegno.rewrite.together import Pair, joined_pairs
from dalsegno.rewrite.writing import Writer


@dataclass(frozen=True)
class Term:
    """One query of the sum."""

    relation: Callable[[Occurrence], str | None]
    is_removed: bool


def terms(writer: Writer, scans: Mapping[Scan, Siblings]) -> list[Term]:
    """The queries whose sum is the change, for all reads that changed."""
    order, pairs = [scan.occurrence for scan in scans], joined_pairs(writer.analysis.root)
    found = []
    for scan, siblings in scans.items():
        change = writer.change(scan.table.name)
        found.append(Term(_term(writer, order, pairs, scan, siblings, change.added), is_removed=False))
        if change.removed is not None:
            found.append(Term(_term(writer, order, pairs, scan, siblings, change.removed), is_removed=True))
    return found


def joined_term(writer: Writer, scans: Mapping[Scan, Siblings]) -> Term:
    """The one query that is left if new rows join with new rows alone."""
    changed = {scan.occurrence for scan in scans}
    siblings = frozenset(number for each in scans.values() for number in each)

    def relation(occurrence: Occurrence) -> str | None:
        if occurrence.number in siblings:
            return writer.nothing(occurrence)
        return writer.change(occurrence.name).added if occurrence.number in changed else None

    return Term(relation, is_removed=False)


def _term(
    writer: Writer, order: list[int], pairs: Sequence[Pair], scan: Scan, siblings: Siblings, changed: str
) -> Callable[[Occurrence], str | None]:
    at = order.index(scan.occurrence)

    def relation(occurrence: Occurrence) -> str | None:
        if occurrence.number in siblings:
            return writer.nothing(occurrence)
        if occurrence.number not in order:
            return None
        change = writer.change(occurrence.name)
        place = order.index(occurrence.number)
        if place == at:
            return changed
        state = change.after if place < at else change.before
        if state is None:
            return writer.nothing(occurrence)
        return writer.selected(occurrence, state, where_all(_near(writer, pairs, scan, occurrence)))

    return relation


def _near(writer: Writer, pairs: Sequence[Pair], scan: Scan, occurrence: Occurrence) -> list[str]:
    """What holds for all rows of one read that join with changed rows of another."""
    return [
        changed_range(writer.reading, scan, own, f"s.{quoted(theirs.name)}")
        for pair in pairs
        for one, own, other, theirs in pair.both_ways
        if one is scan and other.occurrence == occurrence.number and isinstance(theirs, exp.Column)
    ]
