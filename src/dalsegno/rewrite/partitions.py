"""Partitions of the sources as partitions of the target: which columns pass through, and predicates on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.rewrite.keys import Direct
from dalsegno.rewrite.tables import Change, Name, Table, quoted
from dalsegno.rewrite.touching import TouchedKeys
from dalsegno.spark.statements import Token, tokens_of

EVERYTHING, NOTHING = "true", "false"
_UNITS = ("year", "month", "day", "hour")


@dataclass(frozen=True)
class PassedPartitions:
    """Partition columns of the sources that changed, and the columns of the target that they become."""

    #: Source → its column → the output column.
    columns: Mapping[Name, Mapping[str, str]]

    def predicate(self, filters: Mapping[Name, str], column: Callable[[str], str]) -> str:
        """What holds for all touched rows, as a predicate on output columns; ``column`` writes one of them."""
        found = [
            renamed(filters[name], {source: column(output) for source, output in columns.items()})
            for name, columns in self.columns.items()
        ]
        return any_of(found)

    def reopened(self, changes: Mapping[Name, Change], column: Callable[[str], str]) -> str:
        """The same for touched rows that have the output columns of rows that were there before."""
        filters = {
            name: (changes[name].reopened_filter if self.are_all(name, changes[name]) else None)
            or changes[name].partition_filter
            for name in self.columns
        }
        return self.predicate(filters, column)

    def are_all(self, name: Name, change: Change) -> bool:
        """Whether all of a source's partition columns pass, so that equal rows are in the same partition."""
        return change.partitioned_by is not None and change.partitioned_by <= {*map(str.lower, self.columns[name])}


def any_of(predicates: Sequence[str]) -> str:
    """What holds where one of some predicates holds."""
    if EVERYTHING in predicates:
        return EVERYTHING
    unique = list(dict.fromkeys(each for each in predicates if each != NOTHING)) or [NOTHING]
    return unique[0] if len(unique) == 1 else "(" + " OR ".join(unique) + ")"


def renamed(predicate: str, columns: Mapping[str, str]) -> str:
    """A predicate of ``iceberg.predicates`` on other columns.

    What it says of columns without another name is left out: it then holds for more rows, up to "true".
    """
    found, _ = _part(predicate, list(tokens_of(predicate)), 0, columns)
    return EVERYTHING if found is None else found


def _part(text: str, tokens: Sequence[Token], at: int, columns: Mapping[str, str]) -> tuple[str | None, int]:
    """A condition that begins at a token, None for "true"; and where it ends."""
    if tokens[at].word != "(":
        return _condition(text, tokens, at, columns)
    parts, words = [], []
    while True:
        part, at = _part(text, tokens, at + 1, columns)
        parts.append(part)
        if tokens[at].word == ")":
            break
        words.append(tokens[at].word)
    if words and words[0] == "OR" and None in parts:
        return None, at + 1
    kept = [part for part in parts if part is not None]
    return (f"({f' {words[0]} '.join(kept)})" if len(kept) > 1 else next(iter(kept), None)), at + 1


def _condition(text: str, tokens: Sequence[Token], at: int, columns: Mapping[str, str]) -> tuple[str | None, int]:
    """A comparison of one column, or a constant."""
    begin, depth, is_between = at, 0, False
    while at < len(tokens) and not (depth == 0 and (tokens[at].word == ")" or _is_end(tokens[at], is_between))):
        depth += {"(": 1, ")": -1}.get(tokens[at].word, 0)
        is_between = tokens[at].word == "BETWEEN" or (is_between and tokens[at].word != "AND")
        at += 1
    last = tokens[at - 1]
    if not tokens[begin].text.startswith("`"):
        word = tokens[begin].word.lower()
        return (None if word == EVERYTHING else text[tokens[begin].start : last.start + len(last.text)]), at
    is_path = begin + 1 < at and tokens[begin + 1].word == "."
    name = tokens[begin].text[1:-1].replace("``", "`").lower()
    if is_path or name not in columns:
        return None, at
    behind = tokens[begin].start + len(tokens[begin].text)
    return columns[name] + text[behind : last.start + len(last.text)], at


def _is_end(token: Token, is_between: bool) -> bool:
    return token.word == "OR" or (token.word == "AND" and not is_between)


def passed(keys: TouchedKeys, target: Table, *, aligned: bool) -> PassedPartitions | None:
    """The partition columns among a key; ``aligned``: each touched partition is made of whole ones of the target."""
    found: dict[Name, dict[str, str]] = {}
    for touch in keys.touches:
        if not isinstance(touch, Direct):
            return None
        table = touch.carrier.scan.table
        columns = {
            part.name: output
            for part, output in zip(touch.carrier.key, keys.names, strict=True)
            if isinstance(part, exp.Column) and _is_passed(table, part.name, target, output, aligned=aligned)
        }
        if not columns or found.setdefault(table.name, columns) != columns:
            return None
    return PassedPartitions(found)


def _is_passed(source: Table, column: str, target: Table, output: str, *, aligned: bool) -> bool:
    sources = [field.transform for field in source.partitions if field.column.lower() == column.lower()]
    targets = [field.transform for field in target.partitions if field.column.lower() == output.lower()]
    if not aligned:
        return bool(sources)
    kind = source.type_of(column)
    return bool(sources) and any(all(_is_aligned(one, other, kind) for one in sources) for other in targets)


def _is_aligned(source: str, target: str, kind: str | None) -> bool:
    if target == "identity":
        return True
    if source == "identity" and kind == "date":
        source = "day"
    return source in _UNITS and target in _UNITS and _UNITS.index(source) <= _UNITS.index(target)


def quoted_with(alias: str) -> Callable[[str], str]:
    return lambda name: f"{alias}{quoted(name)}"


def partition_names(target: Table, outputs: Sequence[str]) -> list[str]:
    """The output columns that the target is partitioned by."""
    wanted = {field.column.lower() for field in target.partitions}
    return [name for name in outputs if name.lower() in wanted]
