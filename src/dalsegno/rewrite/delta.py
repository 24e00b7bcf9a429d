"""The delta strategy: the old value of each aggregate, and what changed of it.

The change of a query that groups what is linear in its sources is the query over what was added, less the query over
what was removed. Adding both to the target's own rows gives its new rows. A distinct value is new to a group if the
group did not have it before, which a probe of the old rows tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.keys import NotProven
from dalsegno.rewrite.linear import Siblings, linear_below
from dalsegno.rewrite.measures import Measure, MeasureKind, measures_of
from dalsegno.rewrite.partitions import EVERYTHING, PassedPartitions, passed, quoted_with
from dalsegno.rewrite.relations import Block, Obstacle, Occurrence, Scan
from dalsegno.rewrite.slices import SelectSlices, Span, distinct_argument
from dalsegno.rewrite.tables import Reading, Table, quoted, quoted_list
from dalsegno.rewrite.terms import Term, joined_term, terms
from dalsegno.rewrite.texts import Edit
from dalsegno.rewrite.touching import TouchedKeys, candidates, inner_key, touched_keys
from dalsegno.rewrite.writing import KEYS, Writer

_VALUE = "_dalsegno_value"


@dataclass(frozen=True)
class Delta:
    """A grouped query that can be brought up to date from its target and from what changed."""

    analysis: Analysis
    target: Table
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    #: The output that counts the rows of a group.
    rows: str | None
    scans: Mapping[Scan, Siblings]
    removes: bool
    #: For each distinct count the text that it counts.
    distinct: Mapping[str, Span]
    slices: SelectSlices | None
    through: PassedPartitions | None
    is_aligned: bool
    #: Whether new rows join with new rows alone.
    is_joined: bool = False
    #: The keys of touched rows: all of their rows are added as they are, and taken away as they were.
    restricted: TouchedKeys | None = None

    def _terms(self, writer: Writer) -> list[Term]:
        return [joined_term(writer, self.scans)] if self.is_joined else terms(writer, self.scans)

    def statements(self, reading: Reading) -> list[str]:
        writer = Writer(self.analysis, self.target, reading)
        filters = {name: change.partition_filter for name, change in reading.changes.items()}
        predicate = EVERYTHING if self.through is None else self.through.predicate(filters, quoted_with(""))
        changes = self._changes(writer, reading)
        if not self.is_aligned and self.target.is_small:
            # MERGE would rewrite its few files as well, and compute the changes once more to find them.
            predicate = EVERYTHING
        elif not self.is_aligned or predicate == EVERYTHING:
            pruning = EVERYTHING if self.through is None else self.through.predicate(filters, quoted_with("t."))
            return [self._merge(writer, changes, "" if pruning == EVERYTHING else f" AND {pruning}")]
        kept = f"SELECT {quoted_list(writer.columns)} FROM {writer.name} WHERE {predicate}"
        combined = self._combined(writer, f"{changes}\nUNION ALL\n{kept}")
        return [f"INSERT INTO {writer.name} REPLACE WHERE {predicate}\n{combined}"]

    def _combined(self, writer: Writer, rows: str) -> str:
        """The groups of some rows, each once; those that have lost all of their rows are left out."""
        totals = {measure.name: measure.total() for measure in self.measures}
        values = {m.name: m.value(removes=self.removes, total=totals.__getitem__) for m in self.measures}
        listed = ", ".join(f"{values.get(name, quoted(name))} AS {quoted(name)}" for name in writer.columns)
        having = f"\nHAVING {totals[self.rows]} > 0" if self.removes and self.rows and self.keys else ""
        return f"SELECT {listed} FROM (\n{rows}\n){self._grouping()}{having}"

    def _grouping(self) -> str:
        return f"\nGROUP BY {quoted_list(self.keys)}" if self.keys else ""

    def _merge(self, writer: Writer, changes: str, pruning: str) -> str:
        """Where the target is not partitioned alike: change the rows of the groups that changed."""
        by_name = {measure.name: measure for measure in self.measures}
        totals = ", ".join(
            f"{by_name[name].total()} AS {quoted(name)}" if name in by_name else quoted(name) for name in writer.columns
        )
        both = {name: measure.both("t.", "s.") for name, measure in by_name.items()}
        new = {name: f"s.{quoted(name)}" for name in by_name}
        on = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in self.keys) or "true"
        updated = ", ".join(
            f"{quoted(name)} = {measure.value(removes=self.removes, total=both.__getitem__)}"
            for name, measure in by_name.items()
        )
        inserted = ", ".join(
            by_name[name].value(removes=self.removes, total=new.__getitem__) if name in by_name else f"s.{quoted(name)}"
            for name in writer.columns
        )
        has_left = self.rows if self.removes and self.keys else None
        deleting = f"WHEN MATCHED AND {both[has_left]} <= 0 THEN DELETE\n" if has_left else ""
        inserting = f" AND {new[has_left]} > 0" if has_left else ""
        return f"""MERGE INTO {writer.name} t
USING (
SELECT {totals} FROM (
{changes}
){self._grouping()}
) s
ON {on}{pruning}
{deleting}WHEN MATCHED THEN UPDATE SET {updated}
WHEN NOT MATCHED{inserting} THEN INSERT ({quoted_list(writer.columns)}) VALUES ({inserted})"""

    def _changes(self, writer: Writer, reading: Reading) -> str:
        """What each term adds to each group, or takes from it, with the columns of the target."""
        if self.restricted is not None:
            sides = [self._signed(writer, writer.restricted(self.restricted), is_removed=False)]
            sides.append(self._signed(writer, writer.restricted(self.restricted, is_before=True), is_removed=True))
            keys = f"WITH {KEYS} AS (\n{writer.keys_sql(self.restricted)}\n)"
            return "\n".join([f"SELECT * FROM (\n{keys}", "\nUNION ALL\n".join(sides), ")"])
        found = [
            self._signed(writer, writer.query(term.relation), is_removed=term.is_removed)
            for term in self._terms(writer)
        ]
        found += [self._new_values(writer, reading, name) for name in self.distinct]
        return "\nUNION ALL\n".join(found)

    def _signed(self, writer: Writer, query: str, *, is_removed: bool) -> str:
        signed = {measure.name: measure.signed("q.", is_removed=is_removed) for measure in self.measures}
        listed = ", ".join(signed.get(name, f"q.{quoted(name)}") for name in writer.columns)
        return f"SELECT {listed} FROM (\n{query}\n) q"

    def _new_values(self, writer: Writer, reading: Reading, name: str) -> str:
        """How many values of a group were not there before."""
        added = " UNION ALL ".join(
            f"SELECT * FROM (\n{self._values(name, writer, term.relation)}\n)" for term in self._terms(writer)
        )
        predicate = EVERYTHING if self.through is None else self.through.reopened(reading.changes, quoted_with(""))
        where = "" if predicate == EVERYTHING else f" WHERE {predicate}"
        before = f"SELECT * FROM (\n{self._values(name, writer, self._before(writer))}\n){where}"
        values = f"SELECT * FROM ({added}) WHERE {_VALUE} IS NOT NULL"
        same = f"n.{_VALUE} = b.{_VALUE}" + "".join(f" AND n.{quoted(key)} <=> b.{quoted(key)}" for key in self.keys)
        # The semi join keeps few of the old values, so that what follows is cheap.
        late = f"SELECT DISTINCT * FROM ({values}){where}"
        hint = writer.broadcast("n", is_late=self.through is not None)
        old = f"SELECT {hint}b.* FROM ({before}) b LEFT SEMI JOIN ({late}) n ON {same}"
        both = f"SELECT *, 1 AS _dalsegno_new FROM ({values}) UNION ALL SELECT *, 0 FROM ({old})"
        columns = ", ".join([*map(quoted, self.keys), _VALUE])
        first = f"SELECT {columns} FROM ({both}) GROUP BY {columns} HAVING MIN(_dalsegno_new) = 1"
        shown = ", ".join(
            quoted(each)
            if each in self.keys
            else (f"COUNT(*) AS {quoted(each)}" if each == name else f"NULL AS {quoted(each)}")
            for each in writer.columns
        )
        return f"SELECT {shown} FROM ({first}){self._grouping()}"

    def _values(self, name: str, writer: Writer, relation: Callable[[Occurrence], str | None]) -> str:
        """The user's query with its keys and the values of a distinct count as outputs, not grouped."""
        slices = self.slices
        if slices is None:
            raise AssertionError
        spans = {output: span for output, span in zip(self.analysis.outputs, slices.outputs, strict=True)}
        parts = [(spans[key], key) for key in self.keys] + [(self.distinct[name], _VALUE)]
        edits = [
            edit for edit in self.analysis.edits if edit.start >= slices.source.start or edit.end <= slices.list_start
        ]
        listed = ", ".join(f"{self._slice(span)} AS {quoted(output)}" for span, output in parts)
        edits.append(Edit(slices.list_start, slices.source.start, listed + "\n"))
        edits.append(Edit(slices.source.end, len(self.analysis.text.text), ""))
        return writer.query(relation, edits)

    def _slice(self, span: Span) -> str:
        """A part of the text, with the edits that concern it."""
        inside = [
            replace(edit, start=edit.start - span.start, end=edit.end - span.start)
            for edit in self.analysis.edits
            if span.start <= edit.start and edit.end <= span.end
        ]
        part = replace(self.analysis.text, text=self.analysis.text.text[span.start : span.end])
        return part.edited(inside)

    def _before(self, writer: Writer) -> Callable[[Occurrence], str | None]:
        changed = {scan.occurrence for scan in self.scans}

        def relation(occurrence: Occurrence) -> str | None:
            if occurrence.number not in changed:
                return None
            return writer.change(occurrence.name).before or writer.nothing(occurrence)

        return relation


def delta_of(analysis: Analysis, target: Table, scans: Sequence[Scan], *, removes: bool) -> Delta:
    """How a query is brought up to date by deltas of what changed; raises ``NotProven``."""
    block = _grouped(analysis)
    linear = linear_below(block)
    for scan in scans:
        if scan not in linear:
            raise _unproven(f"{scan.table} is grouped, deduplicated or outer-joined before the last GROUP BY.", "")
    return _delta(analysis, target, block, {scan: linear[scan] for scan in scans}, removes=removes)


def restricted_delta_of(analysis: Analysis, target: Table, scans: Sequence[Scan]) -> Delta:
    """The same by all rows with touched keys, as they are and as they were; raises ``NotProven``."""
    block = _grouped(analysis)
    keys = inner_key(analysis, block, scans)
    found = _delta(analysis, target, block, {scan: frozenset() for scan in scans}, removes=True)
    return replace(found, restricted=keys)


def _grouped(analysis: Analysis) -> Block:
    block = analysis.root
    if not isinstance(block, Block) or block.groups is None or block.windows or block.is_distinct:
        raise _unproven("the query does not end in a GROUP BY.", "")
    if block.having is not None:
        raise _unproven("HAVING hides groups, and what they are made of.", "Filter where the table is read.")
    return block


def _delta(analysis: Analysis, target: Table, block: Block, scans: Mapping[Scan, Siblings], *, removes: bool) -> Delta:
    groups = block.groups or []
    keys = tuple(name for name in analysis.outputs if any(block.outputs[name.lower()] == group for group in groups))
    if any(all(block.outputs[name.lower()] != group for name in keys) for group in groups):
        raise _unproven("a grouping column is not among the outputs.", "Add it to the outputs.")
    usable = set(candidates(analysis, target))
    if inexact := [key for key in keys if key not in usable]:
        raise _unproven(f"the type of {', '.join(inexact)} is not exact, or not known.", "")
    measures, rows = measures_of(analysis, block, set(keys), removes=removes)
    slices = SelectSlices.of(analysis.text)
    distinct = _distinct_spans(analysis, measures, slices)
    through, is_aligned = _partitions(analysis, target, keys, list(scans))
    return Delta(
        analysis, target, keys, tuple(measures), rows, scans, removes, distinct, slices, through, is_aligned
    )  # fmt: skip


def _distinct_spans(analysis: Analysis, measures: Sequence[Measure], slices: SelectSlices | None) -> dict[str, Span]:
    names = [measure.name for measure in measures if measure.kind is MeasureKind.DISTINCT]
    if not names:
        return {}
    if slices is None or len(slices.outputs) != len(analysis.outputs):
        raise _unproven("a distinct count stands where its values cannot be selected.", "")
    spans = dict(zip(analysis.outputs, slices.outputs, strict=True))
    found = {}
    for name in names:
        argument = distinct_argument(analysis.text, spans[name])
        if argument is None:
            raise _unproven(f"{name} counts combinations of several columns.", "Count a struct of them.")
        found[name] = argument
    return found


def _partitions(
    analysis: Analysis, target: Table, keys: Sequence[str], scans: Sequence[Scan]
) -> tuple[PassedPartitions | None, bool]:
    """The partition columns among the keys, and whether the target is partitioned by them alike."""
    for aligned in (True, False):
        provable = []
        for key in keys:
            try:
                if passed(touched_keys(analysis, [key], scans), target, aligned=aligned) is not None:
                    provable.append(key)
            except NotProven:
                continue
        if provable:
            return passed(touched_keys(analysis, provable, scans), target, aligned=aligned), aligned
    return None, False


def _unproven(reason: str, hint: str) -> NotProven:
    return NotProven(Obstacle("delta", reason, hint))
