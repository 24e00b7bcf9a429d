"""Where the text of a query names tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from dalsegno.errors import UserError
from dalsegno.rewrite.relations import Occurrence
from dalsegno.rewrite.tables import Name, Table
from dalsegno.rewrite.texts import Place, QueryText

_GENERATORS = frozenset({"range", "sequence", "explode", "posexplode", "inline", "stack"})


@dataclass
class Occurrences:
    """Every place that names a table; nodes of the tree know their number, or which CTE they mean."""

    found: list[Occurrence] = field(default_factory=list)
    nodes: list[exp.Table] = field(default_factory=list)

    @classmethod
    def of(cls, text: QueryText, tree: exp.Expr, table_of: Callable[[Name, Place], Table]) -> Occurrences:
        occurrences = cls()
        occurrences._visit(tree, frozenset(), text, table_of)
        return occurrences

    def _visit(
        self, node: exp.Expr, ctes: frozenset[str], text: QueryText, table_of: Callable[[Name, Place], Table]
    ) -> None:
        if isinstance(node, exp.Query) and (with_ := node.args.get("with_")):
            for cte in with_.expressions:
                own = {cte.alias.lower()}
                self._visit(cte.this, ctes | own if with_.recursive else ctes, text, table_of)
                ctes |= own
        if isinstance(node, exp.Table):
            self._note(node, ctes, text, table_of)
        for key, child in node.args.items():
            # Hints name tables, too, but read none.
            for each in () if key in ("with_", "hint") else child if isinstance(child, list) else [child]:
                if isinstance(each, exp.Expr):
                    self._visit(each, ctes, text, table_of)

    def _note(
        self, node: exp.Table, ctes: frozenset[str], text: QueryText, table_of: Callable[[Name, Place], Table]
    ) -> None:
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            _refuse_unknown(node, text)
            return
        name = tuple(part.name for part in parts)
        if len(name) == 1 and name[0].lower() in ctes:
            node.meta["cte"] = name[0].lower()
            return
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        place = text.place(start)
        node.meta["occurrence"] = len(self.found)
        implied = None if node.args.get("alias") else parts[-1].name
        self.found.append(Occurrence(len(self.found), table_of(name, place), start, end, place, implied))
        self.nodes.append(node)


def _refuse_unknown(node: exp.Table, text: QueryText) -> None:
    """What is read must be known; functions that make rows of numbers read nothing."""
    if node.name.lower() not in _GENERATORS:
        raise UserError(
            f"The query reads something that has no name in its text ({text.place_of(node)}).",
            hint="Name each table: IDENTIFIER(…) and functions that make tables are not supported.",
        )


def finder(sources: dict[Name, Table], current: Name) -> Callable[[Name, Place], Table | None]:
    """Finds the source that a name means; names without catalog or namespace mean the current ones."""
    lowered = tuple(part.lower() for part in current)

    def find(name: Name, _: Place) -> Table | None:
        own = tuple(part.lower() for part in name)
        candidates = (own, lowered[:1] + own, lowered + own)
        return next((sources[each] for each in candidates if each in sources), None)

    return find
