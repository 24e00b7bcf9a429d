"""Views: the name of one is replaced by its query in parentheses. The rest of the text stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dalsegno.errors import UserError
from dalsegno.rewrite.occurrences import Occurrences
from dalsegno.rewrite.relations import Occurrence
from dalsegno.rewrite.tables import Name, Table, quoted, quoted_list
from dalsegno.rewrite.texts import Edit, QueryText

_MOST_NESTED = 32


@dataclass(frozen=True)
class View:
    """A view of a catalog."""

    name: Name
    sql: str
    #: The catalog and the namespace of names that its query writes without.
    current: Name
    columns: tuple[str, ...]
    #: What its query called the columns when the view was made; empty if that is not known.
    query_columns: tuple[str, ...] = ()


#: A name as it is written, and the catalog and namespace of names without → the full name.
Resolve = Callable[[Name, Name], Name]
#: A full name → the view; None if it is a table.
FindView = Callable[[Name], View | None]


def without_views(query: str, current: Name, resolve: Resolve, find: FindView) -> str:
    """A query with the queries of views in their places."""
    return _Expansion(resolve, find).expanded(query, current, ())


class _Expansion:
    def __init__(self, resolve: Resolve, find: FindView) -> None:
        self._resolve = resolve
        self._find = find

    def expanded(self, query: str, current: Name, within: Sequence[View]) -> str:
        text = QueryText.of(query)
        tree = text.parsed()
        named = Occurrences.of(text, tree, lambda name, _: Table(self._resolve(name, current), {}))
        edits = []
        for occurrence, node in zip(named.found, named.nodes, strict=True):
            view = self._find(occurrence.name)
            if view is not None:
                edits.append(self._view(occurrence, node, view, within))
                edits += _shortened(tree, occurrence)
            elif within:
                # Names without a catalog mean something else in the query around it.
                edits.append(Edit(occurrence.start, occurrence.end, quoted(*occurrence.name)))
        if within and (star := _plain_star(tree)) is not None and within[-1].query_columns:
            # Columns that a table got later are not the view's.
            edits.append(Edit(star, star + 1, quoted_list(within[-1].query_columns)))
        return text.edited(dict.fromkeys(edits))

    def _view(self, occurrence: Occurrence, node: exp.Table, view: View, within: Sequence[View]) -> Edit:
        name = ".".join(view.name)
        if len(within) > _MOST_NESTED or any(view.name == each.name for each in within):
            raise UserError(f"The view {name} reads itself.", hint="Correct its definition.")
        if others := [key for key in ("version", "when", "sample") if node.args.get(key)]:
            raise UserError(
                f"The query reads the view {name} ({occurrence.place}) with {others[0].upper()}.", hint="Leave it out."
            )
        inner = self.expanded(view.sql, view.current, (*within, view))
        alias = f" {quoted(occurrence.implied_alias)}" if occurrence.implied_alias else ""
        return Edit(occurrence.start, occurrence.end, _renamed(inner, view) + alias)


def _renamed(query: str, view: View) -> str:
    """The query with the columns of the view."""
    tree = QueryText.of(query).parsed()
    names = [name.lower() for name in tree.named_selects]
    if names == [name.lower() for name in view.columns]:
        return f"({query})"
    is_by_name = "*" in names and len(set(view.query_columns)) == len(view.columns)
    if is_by_name:
        pairs = zip(view.query_columns, view.columns, strict=True)
        shown = ", ".join(f"{quoted(own)} AS {quoted(name)}" for own, name in pairs)
        return f"(SELECT {shown} FROM ({query}))"
    columns = quoted_list(view.columns)
    return f"(SELECT {columns} FROM ({query}) AS `v`({columns}))"


def _plain_star(tree: exp.Expr) -> int | None:
    """Where the star of a SELECT stands that shows each row of its FROM with all columns, and nothing else."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or tree.args.get("distinct"):
        return None
    star = tree.expressions[0]
    is_plain = isinstance(star, exp.Star) and not any(star.args.values())
    return star.meta.get("start") if is_plain and not tree.args.get("group") else None


def _shortened(tree: exp.Expr, occurrence: Occurrence) -> list[Edit]:
    """Columns that are qualified by more than the last part of the view's name, which is its alias."""
    if occurrence.implied_alias is None:
        return []
    found = []
    for column in tree.find_all(exp.Column):
        *qualifiers, _ = column.parts
        wanted = tuple(part.lower() for part in occurrence.name)
        for size in range(len(wanted), 1, -1):
            if tuple(part.name.lower() for part in qualifiers[:size]) == wanted[-size:]:
                first, last = qualifiers[0], qualifiers[size - 1]
                found.append(Edit(first.meta["start"], last.meta["start"], ""))
                break
    return found
