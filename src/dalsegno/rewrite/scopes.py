"""What the names of columns mean in a SELECT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dalsegno.rewrite.relations import Item, Obstacle, Occurrence, Scan, column
from dalsegno.rewrite.texts import Edit, QueryText

#: The qualifier of what cannot be seen: the right side of a semi join, and what a subquery reads.
HIDDEN = ("#hidden",)
_METADATA = frozenset(
    {"_file", "_pos", "_partition", "_spec_id", "_deleted", "_row_id", "_last_updated_sequence_number"}
)


class Unclear(Exception):
    """A part of a query that is not followed; whatever stands below it is behind a barrier."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(str(obstacle))
        self.obstacle = obstacle


@dataclass
class Scope:
    """The items of a SELECT as its expressions see them."""

    items: list[Item]
    outer: Scope | None = None
    #: Columns of USING → the item that they are taken from.
    merged: dict[str, Item] = field(default_factory=dict)

    @property
    def by_number(self) -> dict[int, Item]:
        return {item.number: item for item in self.items}

    @property
    def visible(self) -> list[Item]:
        return [item for item in self.items if item.qualifier != HIDDEN]


@dataclass
class Columns:
    """Resolves columns, and notes which are read of each occurrence."""

    text: QueryText
    occurrences: Sequence[Occurrence]
    used: dict[int, set[str]] = field(default_factory=dict)
    #: Qualifiers of several parts that must be shortened where a table is replaced.
    edits: list[Edit] = field(default_factory=list)

    def resolved(self, found: exp.Column, scope: Scope, aliases: Mapping[str, exp.Expr]) -> exp.Expr:
        """What a column stands for: a column of an item, an output to the left, or something outside."""
        parts = [part.name for part in found.parts]
        if (own := self._in(parts, scope, found)) is not None:
            return own
        if parts[0].lower() in aliases:
            return _with_fields(aliases[parts[0].lower()], parts[1:])
        outer, depth = scope.outer, 0
        while outer is not None:
            if (there := self._in(parts, outer, found)) is not None:
                return _outside(there, depth)
            outer, depth = outer.outer, depth + 1
        raise self.unclear(found, "column", f"{'.'.join(parts)!r} is not a column of the tables here.", "")

    def _in(self, parts: Sequence[str], scope: Scope, node: exp.Column) -> exp.Expr | None:
        lowered = tuple(part.lower() for part in parts)
        for length in range(min(len(parts) - 1, 3), -1, -1):
            qualifier, name = lowered[:length], lowered[length]
            items = [item for item in scope.visible if not length or item.qualifier[-length:] == qualifier]
            found = [item for item in items if name in item.relation.names]
            if not length and name in scope.merged:
                found = [scope.merged[name]]
            if len(found) > 1:
                raise self.unclear(node, "column", f"{name!r} is in several tables.", "Qualify it with its table.")
            if found:
                if length > 1:
                    self._shorten(node, length)
                return _with_fields(self.read(found[0], name), parts[length + 1 :])
            self._refuse_metadata(name, items, node)
        return None

    def _refuse_metadata(self, name: str, items: Sequence[Item], node: exp.Column) -> None:
        scans = [item.relation for item in items if isinstance(item.relation, Scan)]
        if name in _METADATA and scans:
            for scan in scans:
                self.used.setdefault(scan.occurrence, set()).add(name)
            reason = "it changes when files are rewritten, without any change of a row."
            raise self.unclear(node, f"column {name}", reason, "Leave it out.")

    def _shorten(self, node: exp.Column, length: int) -> None:
        """Where a table is replaced, ``lake.media.t.x`` becomes ``t.x``."""
        parts = node.parts
        edit = Edit(parts[0].meta["start"], parts[length - 1].meta["start"], "")
        if edit not in self.edits:
            self.edits.append(edit)

    def read(self, item: Item, name: str) -> exp.Expr:
        """A column of an item, which is read if it is one of a table."""
        if isinstance(item.relation, Scan):
            self.used.setdefault(item.relation.occurrence, set()).add(item.relation.table.by_lower_name[name])
        return column(item, name)

    def read_all(self, occurrence: Occurrence) -> None:
        self.used.setdefault(occurrence.number, set()).update(occurrence.table.columns)

    def unclear(self, node: exp.Expr, operator: str, reason: str, hint: str) -> Unclear:
        """An obstacle at a part of the tree."""
        return Unclear(Obstacle(operator, reason, hint, self.text.place_of(node)))


def _outside(expression: exp.Expr, depth: int) -> exp.Expr:
    """A column of a query around this one: unknown here, but remembered if that is the next one."""
    found = exp.Anonymous(this=f"#outer {expression.sql()}")
    if depth == 0:
        found.meta["column"] = expression
    return found


def outside_column(expression: exp.Expr) -> exp.Expr | None:
    """The column of the query around this one that an expression is, if it is one."""
    return expression.meta.get("column") if isinstance(expression, exp.Anonymous) else None


def _with_fields(expression: exp.Expr, fields: Sequence[str]) -> exp.Expr:
    for name in fields:
        expression = exp.Dot(this=expression.copy(), expression=exp.to_identifier(name, quoted=True))
    return expression
