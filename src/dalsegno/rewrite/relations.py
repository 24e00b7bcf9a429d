"""A query as a tree of the operators that matter: reads of tables, SELECT blocks, unions, and barriers.

In expressions every column is resolved: its table is the number of an ``Item``, its name is in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlglot import exp

from dalsegno.rewrite.tables import Name, Table
from dalsegno.rewrite.texts import Place


class Verdict(StrEnum):
    """What follows from an obstacle."""

    #: The result is a matter of chance or of the time of day: nobody can say what the target should hold.
    REFUSED = "refused"
    #: A change below it may change any row of the result, as far as can be proven.
    FULL = "full"
    #: It keeps a column from being a key; others may do.
    KEY = "key"


@dataclass(frozen=True)
class Obstacle:
    """What keeps a query, or a change of one of its sources, from being incremental."""

    operator: str
    reason: str
    hint: str
    place: Place | None = None
    verdict: Verdict = Verdict.FULL

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"{self.operator}{where}: {self.reason} {self.hint}".strip()


@dataclass(frozen=True)
class Occurrence:
    """One place of the text that names a source."""

    number: int
    table: Table
    #: The name in the text, from the first part to the last.
    start: int
    end: int
    place: Place
    #: What columns are qualified with, if the text gives no alias.
    implied_alias: str | None
    #: The columns that the query reads, as the table writes them; empty for none, as in COUNT(*).
    columns: tuple[str, ...] = ()

    @property
    def name(self) -> Name:
        return self.table.name


@dataclass(eq=False)
class Scan:
    """One read of a table. A CTE that is used twice makes two of one occurrence."""

    table: Table
    #: The number of the occurrence.
    occurrence: int

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.by_lower_name)


class Join(StrEnum):
    INNER = "inner"
    LEFT = "left"
    #: Also what a subquery reads of which each row looks at the rows with equal columns alone.
    SEMI = "semi"
    ANTI = "anti"
    #: LATERAL VIEW: rows made of each row.
    GENERATOR = "generator"


@dataclass(eq=False)
class Item:
    """What a FROM names, and how it is joined to what stands before it."""

    number: int
    relation: Relation
    #: By what its columns may be qualified: the parts of a name, or one alias.
    qualifier: Name
    join: Join = Join.INNER

    @property
    def is_mandatory(self) -> bool:
        """Whether each row of the block has a row of this item."""
        return self.join is Join.INNER


@dataclass(frozen=True)
class Edge:
    """Two expressions, each over one item, that are equal in every row of the block that has both items."""

    one: Item
    one_side: exp.Expr
    other: Item
    other_side: exp.Expr
    #: Equality in the ON of an outer, semi or anti join says nothing of ``one`` if ``other`` is absent.
    is_one_way: bool


@dataclass(eq=False)
class Block:
    """A SELECT."""

    node: exp.Select
    items: list[Item]
    edges: list[Edge]
    #: Name → resolved expression.
    outputs: dict[str, exp.Expr]
    #: The grouping expressions; None if the block does not aggregate.
    groups: list[exp.Expr] | None = None
    #: The PARTITION BY of each window function, and the function.
    windows: list[tuple[list[exp.Expr], exp.Expr]] = field(default_factory=list)
    is_distinct: bool = False
    #: The resolved WHERE.
    condition: exp.Expr | None = None
    having: exp.Expr | None = None
    #: What stands in subqueries of expressions, and of which every row may depend.
    subqueries: list[tuple[Relation, Obstacle]] = field(default_factory=list)
    #: Of a subquery: columns of the query around it, and what they must equal.
    correlations: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.outputs)


@dataclass(eq=False)
class Union:
    """UNION ALL; with DISTINCT the same, as a filter on output columns commutes with it."""

    children: list[Relation]
    names: tuple[str, ...]
    is_distinct: bool


@dataclass(eq=False)
class Barrier:
    """Something that no change can be followed through."""

    children: list[Relation]
    names: tuple[str, ...]
    obstacle: Obstacle


@dataclass(eq=False)
class Constant:
    """VALUES, or what a generator makes."""

    names: tuple[str, ...]
    children: list[Relation] = field(default_factory=list)


Relation = Scan | Block | Union | Barrier | Constant


def scans_in(relation: Relation) -> Iterator[Scan]:
    match relation:
        case Scan():
            yield relation
        case Block():
            for item in relation.items:
                yield from scans_in(item.relation)
            for subquery, _ in relation.subqueries:
                yield from scans_in(subquery)
        case _:
            for child in relation.children:
                yield from scans_in(child)


def blocks_in(relation: Relation) -> Iterator[Block]:
    match relation:
        case Scan():
            return
        case Block():
            yield relation
            for item in relation.items:
                yield from blocks_in(item.relation)
            for subquery, _ in relation.subqueries:
                yield from blocks_in(subquery)
        case _:
            for child in relation.children:
                yield from blocks_in(child)


def column(item: Item, name: str) -> exp.Column:
    """A resolved column."""
    return exp.Column(
        this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(f"#{item.number}", quoted=True)
    )


def items_of(expression: exp.Expr, items: Mapping[int, Item]) -> set[Item]:
    """The items that an expression looks at."""
    return {items[int(found.table[1:])] for found in expression.find_all(exp.Column)}
