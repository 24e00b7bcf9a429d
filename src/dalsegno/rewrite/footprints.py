"""What a strategy reads and writes, found in its own statements: relations and filters are replaced by marks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sqlglot import exp

from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.strategy import Strategy
from dalsegno.rewrite.tables import Change, Name, Reading, Table, quoted
from dalsegno.rewrite.together import joined_pairs
from dalsegno.spark.statements import Token, tokens_of

_MARK = re.compile(r"`⟦(\d+) (\w+)⟧`")
_SCOPE = re.compile(r"'⟦(touched|reopened)⟧'")
_NEAR = re.compile(r"'⟦near (\d+) (.*)⟧'", re.DOTALL)
_TARGET = "`⟦target⟧`"
_NAMES = re.compile(r"`(?:[^`]|``)*`")
_CONSTANTS = frozenset({"true", "false"})


class Part(StrEnum):
    """Which relation of a source is read."""

    AFTER = "after"
    BEFORE = "before"
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


_STATES = frozenset({Part.AFTER, Part.BEFORE})


class Scope(StrEnum):
    """Which partitions of a table a statement is limited to."""

    EVERYTHING = "everything"
    #: Those that have changed rows.
    TOUCHED = "touched"
    #: Those of them that were there before.
    REOPENED = "reopened"


class Write(StrEnum):
    """How a statement changes its target."""

    NOTHING = "nothing"
    APPEND = "append"
    REPLACE = "replace"
    MERGE = "merge"


@dataclass(frozen=True)
class Near:
    """A limit of a read: only rows with values of a column that lie in the range of changed values of another one."""

    column: str
    source: Name
    source_column: str


@dataclass(frozen=True)
class Read:
    """A read of one source, or of the target."""

    #: None: the target.
    table: Name | None
    part: Part
    scope: Scope
    near: frozenset[Near] = frozenset()


@dataclass(frozen=True)
class Footprint:
    """What a strategy reads, how often, and how it writes."""

    reads: Mapping[Read, int]
    #: What its probe reads.
    probe: Mapping[Read, int]
    write: Write
    #: The partitions of the target that it replaces or merges into.
    written: Scope


#: Two sources that are joined → the columns that are equal.
Joins = Mapping[tuple[Name, Name], frozenset[tuple[str, str]]]


def joins_of(analysis: Analysis) -> Joins:
    """The joins of plain columns, in both directions."""
    found: dict[tuple[Name, Name], frozenset[tuple[str, str]]] = {}
    for pair in joined_pairs(analysis.root):
        one, other = pair.one_side, pair.other_side
        if isinstance(one, exp.Column) and isinstance(other, exp.Column):
            names = pair.one.table.name, pair.other.table.name
            for key, columns in ((names, (one.name, other.name)), (names[::-1], (other.name, one.name))):
                found[key] = found.get(key, frozenset()) | {columns}
    return found


def marked(reading: Reading, sources: Iterable[Name]) -> tuple[Reading, tuple[Name, ...]]:
    """What a run reads with marks in the place of relations and filters; and the sources by their numbers."""
    names = tuple(sources)
    number = {name: at for at, name in enumerate(names)}
    changes = {name: _marked(change, number[name]) for name, change in reading.changes.items()}
    return Reading(changes, {name: _mark(number[name], Part.AFTER) for name in names if name not in changes}), names


def _mark(number: int, part: Part) -> str:
    return f"`⟦{number} {part}⟧`"


def _marked(change: Change, number: int) -> Change:
    touched, reopened = change.partition_filter, change.reopened_filter
    if touched not in _CONSTANTS:
        columns = list(dict.fromkeys(_NAMES.findall(touched)))
        touched, reopened = (
            "(" + " AND ".join(f"{column} = '⟦{scope}⟧'" for column in columns) + ")"
            for scope in (Scope.TOUCHED, Scope.TOUCHED if reopened is None else Scope.REOPENED)
        )
    return Change(
        _mark(number, Part.AFTER),
        _mark(number, Part.ADDED),
        None if change.removed is None else _mark(number, Part.REMOVED),
        None if change.before is None else _mark(number, Part.BEFORE),
        touched,
        reopened,
        None if change.changed is None else _mark(number, Part.CHANGED),
        {
            name: f"{quoted(name)} = '⟦near {number} {name}⟧'"
            for name, condition in change.ranges.items()
            if condition not in _CONSTANTS and not {"'", "\\"} & set(name)
        },
        partitioned_by=change.partitioned_by,
        later_in_reopened=change.later_in_reopened,
        later=change.later,
    )


def footprint(
    strategy: Strategy, target: Table, reading: Reading, sources: tuple[Name, ...], joins: Joins | None = None
) -> Footprint:
    """What a strategy does for a ``marked`` reading."""
    ranges = {name: frozenset(change.ranges) for name, change in reading.changes.items()}
    known = sources, frozenset(strategy.partition_columns), joins or {}, ranges
    scanner, probing = _Scanner(*known), _Scanner(*known)
    for statement in strategy.statements(reading):
        scanner.scan(statement.replace(quoted(*target.name), _TARGET))
    if (probe := strategy.probe(reading)) is not None:
        probing.scan(probe.replace(quoted(*target.name), _TARGET))
    return Footprint(scanner.reads, probing.reads, scanner.write, scanner.written)


@dataclass
class _Frame:
    """A part of a text in parentheses: what the SELECT that it is at has read so far, and its filter."""

    #: Its own, those of plain queries in its FROM, which stand for a table each, and those of others.
    direct: list[Read] = field(default_factory=list)
    tables: list[Read] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    ended_direct: list[Read] = field(default_factory=list)
    ended: list[Read] = field(default_factory=list)
    is_where: bool = False
    scope: Scope | None = None
    near: set[Near] = field(default_factory=set)


class _Scanner:
    """Finds marks in statements, and the filters that hold for them."""

    def __init__(
        self,
        sources: tuple[Name, ...],
        filtered: frozenset[Name],
        joins: Joins,
        ranges: Mapping[Name, frozenset[str]],
    ) -> None:
        self._sources = sources
        #: The sources that a filter on the partitions of the target reaches.
        self._filtered = filtered
        self._joins = joins
        #: The columns of which it is known where their changed values lie.
        self._ranges = ranges
        #: The last quoted name.
        self._name = ""
        self.reads: Counter[Read] = Counter()
        self.write = Write.NOTHING
        self.written = Scope.EVERYTHING

    def scan(self, text: str) -> None:
        frames, before = [_Frame()], ""
        for token in tokens_of(text):
            self._take(frames, token, before)
            before = token.word
        self._end_select(frames[0])
        self.reads.update([*frames[0].ended, *frames[0].ended_direct])
        if self.write is Write.MERGE:
            self.reads[Read(None, Part.AFTER, self.written)] += 1

    def _take(self, frames: list[_Frame], token: Token, before: str) -> None:
        at = frames[-1]
        match token.word:
            case "(":
                frames.append(_Frame())
            case ")":
                self._end_select(at)
                frames.pop()
                frames[-1].tables += at.ended_direct
                frames[-1].reads += at.ended
            case "SELECT" | "UNION":
                self._end_select(at)
            case "WHERE":
                at.is_where = True
                if before == "REPLACE":
                    self.write = Write.REPLACE
            case "MERGE":
                self.write = Write.MERGE
            case "INSERT" if len(frames) == 1 and before == "":
                self.write = Write.APPEND
            case "":
                self._take_quoted(frames, token.text, before)

    def _take_quoted(self, frames: list[_Frame], text: str, before: str) -> None:
        holder = next((frame for frame in reversed(frames) if frame.is_where), None)
        if found := _MARK.fullmatch(text):
            frames[-1].direct.append(Read(self._sources[int(found[1])], Part(found[2]), Scope.EVERYTHING))
        elif text == _TARGET:
            if before != "INTO":
                frames[-1].direct.append(Read(None, Part.AFTER, Scope.EVERYTHING))
        elif found := _SCOPE.fullmatch(text):
            if holder is not None:
                holder.scope = Scope(found[1])
            if holder is None or (holder is frames[0] and not (holder.tables or holder.reads)):
                # Behind REPLACE WHERE, or in the ON of a MERGE.
                self.written = Scope(found[1])
        elif found := _NEAR.fullmatch(text):
            if holder is not None:
                holder.near.add(Near(self._name, self._sources[int(found[1])], found[2]))
        elif text.startswith("`"):
            self._name = text[1:-1].replace("``", "`")

    def _end_select(self, frame: _Frame) -> None:
        direct = [replace(read, near=frozenset(frame.near)) for read in frame.direct]
        tables = [self._joined(read, [*direct, *frame.tables]) for read in frame.tables]
        frame.ended_direct += [self._within(read, frame.scope) for read in direct]
        frame.ended += [self._within(read, frame.scope) for read in (*tables, *frame.reads)]
        frame.direct, frame.tables, frame.reads = [], [], []
        frame.near, frame.is_where, frame.scope = set(), False, None

    def _within(self, read: Read, scope: Scope | None) -> Read:
        is_reached = read.table is None or read.table in self._filtered
        if scope is None or read.scope is not Scope.EVERYTHING or not is_reached:
            return read
        return replace(read, scope=scope)

    def _joined(self, read: Read, others: Sequence[Read]) -> Read:
        """Spark finds that what is joined with changed rows alone lies in their range, too."""
        if read.table is None or read.part not in _STATES:
            return read
        found = {
            Near(column, other.table, changed)
            for other in others
            if other.table is not None and other.table != read.table and other.part not in _STATES
            for changed, column in self._joins.get((other.table, read.table), ())
            if changed.lower() in self._ranges.get(other.table, ())
        }
        return replace(read, near=read.near | found)
