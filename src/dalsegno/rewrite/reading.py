"""From the text of a query to its tree: which tables it reads where, and what every column stands for.

What is not understood becomes a ``Barrier``, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dalsegno.errors import UserError
from dalsegno.rewrite import functions
from dalsegno.rewrite.expressions import conjuncts
from dalsegno.rewrite.occurrences import Occurrences
from dalsegno.rewrite.relations import (
    Barrier,
    Block,
    Constant,
    Item,
    Join,
    Obstacle,
    Relation,
    Scan,
    Union,
    column,
)
from dalsegno.rewrite.scopes import HIDDEN, Columns, Scope, Unclear
from dalsegno.rewrite.selects import correlations, equalities, groups_of, star_of, windows_of
from dalsegno.rewrite.subqueries import any_row_depends, looked_at, subquery_edges
from dalsegno.rewrite.tables import Name
from dalsegno.rewrite.texts import QueryText

_SELECT_PARTS = frozenset(
    {"with_", "hint", "distinct", "expressions", "from_", "joins", "laterals", "where", "group", "having", "windows"}
    | {"order", "sort", "distribute", "cluster", "limit", "offset"}
)
_MOST_SCANS = 64
_JOINS = {
    **{("", ""): Join.INNER, ("", "INNER"): Join.INNER, ("", "CROSS"): Join.INNER},
    **{("LEFT", ""): Join.LEFT, ("LEFT", "OUTER"): Join.LEFT},
    **{(side, kind): how for side in ("", "LEFT") for kind, how in (("SEMI", Join.SEMI), ("ANTI", Join.ANTI))},
}
_VERSION = ("VERSION AS OF", "the query reads a fixed version.", "Leave it out: each run reads what it captured.")
_TABLE_REASONS = {
    "sample": ("TABLESAMPLE", "it takes other rows each time.", "Filter by a hash of a column."),
    "version": _VERSION,
    "when": _VERSION,
}
#: The CTEs that a query sees, each with those that it sees itself.
Ctes = Mapping[str, tuple[exp.CTE, "Ctes"]]


class Reader:
    """Reads one query."""

    def __init__(self, text: QueryText, occurrences: Occurrences, declared: frozenset[str] = frozenset()) -> None:
        self.occurrences = occurrences
        self.columns = Columns(text, occurrences.found)
        #: Functions of the user that depend on their arguments alone.
        self.declared = declared
        #: Obstacles that concern the whole query.
        self.obstacles: list[Obstacle] = []
        self._items = 0
        self._scans = 0

    def read(self, query: exp.Expr, ctes: Ctes | None = None, outer: Scope | None = None) -> Relation:
        try:
            return self._read(query, ctes or {}, outer)
        except Unclear as unclear:
            return self._behind(query, ctes or {}, unclear.obstacle)

    def _behind(self, query: exp.Expr, ctes: Ctes, obstacle: Obstacle) -> Barrier:
        """Everything that a part of the query reads, with nothing known of how."""
        children: list[Relation] = []
        seen: set[str] = set()

        def look(node: exp.Expr, ctes: Ctes) -> None:
            for table in node.find_all(exp.Table):
                number, name = table.meta.get("occurrence"), str(table.meta.get("cte", ""))
                if number is not None:
                    self.columns.read_all(self.occurrences.found[number])
                    children.append(self._scan(number))
                elif name in ctes and name not in seen:
                    seen.add(name)
                    cte, inner = ctes[name]
                    look(cte.this, inner)

        look(query, ctes)
        names = tuple(found.lower() for found in getattr(query, "named_selects", ()))
        return Barrier(children, names, obstacle)

    def _read(self, query: exp.Expr, ctes: Ctes, outer: Scope | None) -> Relation:
        ctes = self._with(query, ctes)
        unclear = self.columns.unclear
        match query:
            case exp.Select():
                relation: Relation = self._block(query, ctes, outer)
            case exp.Subquery():
                if others := _others(query, {"this", "with_", "alias", "limit", "offset", "order"}):
                    raise unclear(query, others[0].upper(), "it is not understood here.", "Write it as a subquery.")
                if not isinstance(query.this, exp.Query):
                    raise unclear(query, "JOIN", "joins in parentheses are not followed.", "Write them as a subquery.")
                relation = self.read(query.this, ctes, outer)
            case exp.Union() if not query.args.get("by_name"):
                children = [self.read(side, ctes, outer) for side in (query.this, query.expression)]
                if len(children[0].names) != len(children[1].names):
                    raise unclear(query, "UNION", "its sides differ in the number of columns.", "")
                relation = Union(children, children[0].names, bool(query.args.get("distinct")))
            case exp.SetOperation():
                operator = "UNION BY NAME" if isinstance(query, exp.Union) else type(query).__name__.upper()
                raise unclear(query, operator, "it is not followed.", "Use UNION ALL, joins or NOT EXISTS.")
            case _:
                raise unclear(query, type(query).__name__.upper(), "it is not understood.", "Write it as a SELECT.")
        for part in ("limit", "offset"):
            if query.args.get(part):
                reason = "one more row may change which rows it takes."
                raise unclear(query.args[part], part.upper(), reason, "Leave it to whoever reads the table.")
        return relation

    def _with(self, query: exp.Expr, ctes: Ctes) -> Ctes:
        with_ = query.args.get("with_")
        if with_ is None:
            return ctes
        if with_.recursive:
            raise self.columns.unclear(with_, "WITH RECURSIVE", "a recursive query is not followed.", "")
        seen = dict(ctes)
        for cte in with_.expressions:
            seen[cte.alias.lower()] = (cte, dict(seen))
        return seen

    def _renamed(self, relation: Relation, names: Sequence[str], node: exp.Expr) -> Relation:
        """``name(a, b)``: the same with other column names."""
        if not names:
            return relation
        if len(names) != len(relation.names):
            raise self.columns.unclear(node, "WITH", "it names another number of columns than its query has.", "")
        item = self._item(relation, ("",))
        outputs: dict[str, exp.Expr] = {
            new.lower(): column(item, old) for new, old in zip(names, relation.names, strict=True)
        }
        return Block(exp.Select(), [item], [], outputs)

    def _item(self, relation: Relation, qualifier: Name, join: Join = Join.INNER) -> Item:
        self._items += 1
        return Item(self._items, relation, tuple(part.lower() for part in qualifier), join)

    def _scan(self, number: int) -> Scan:
        self._scans += 1
        if self._scans > _MOST_SCANS:
            raise UserError(
                f"The query reads tables more than {_MOST_SCANS} times.", hint="Split it into several tables."
            )
        return Scan(self.occurrences.found[number].table, number)

    # SELECT.

    def _block(self, select: exp.Select, ctes: Ctes, outer: Scope | None) -> Block:
        if others := _others(select, _SELECT_PARTS):
            raise self.columns.unclear(select, others[0].upper(), "it is not understood.", "Leave it out.")
        block = Block(select, [], [], {})
        scope = Scope(block.items, outer)
        if (from_ := select.args.get("from_")) is not None:
            block.items.append(self._from(from_.this, ctes, outer))
        for lateral in select.args.get("laterals") or ():
            self._generate(lateral, block, scope, ctes)
        for join in select.args.get("joins") or ():
            self._join(join, block, scope, ctes)
        if (where := select.args.get("where")) is not None:
            condition = self._resolved(where.this, block, scope, ctes, is_condition=True)
            block.edges += equalities(condition, scope, None)
            block.correlations = list(correlations(condition, scope))
            block.condition = condition
        self._outputs(select, block, scope, ctes)

        def resolve(node: exp.Expr) -> exp.Expr:
            return self._resolved(node, block, scope, ctes, aliases=block.outputs)

        plain = list(block.outputs.values())
        block.groups = groups_of(select, plain, resolve, self.columns)
        if (having := select.args.get("having")) is not None:
            block.having = resolve(having.this)
        block.windows = windows_of(select, plain, resolve, self.columns)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise self.columns.unclear(distinct, "DISTINCT ON", "Spark does not have it.", "")
        block.is_distinct = distinct is not None
        return block

    def _from(self, node: exp.Expr, ctes: Ctes, outer: Scope | None, join: Join = Join.INNER) -> Item:
        alias = node.args.get("alias")
        alias_name = alias.name if isinstance(alias, exp.TableAlias) and alias.this else ""
        names = [found.name for found in alias.columns] if isinstance(alias, exp.TableAlias) else []
        unclear = self.columns.unclear
        qualifier: Name = (alias_name,)
        match node:
            case exp.Table():
                if others := _others(node, {"this", "db", "catalog", "alias"}):
                    unknown = (others[0].upper(), "it is not understood here.", "Write it as a subquery.")
                    raise unclear(node, *_TABLE_REASONS.get(others[0], unknown))
                if (number := node.meta.get("occurrence")) is not None:
                    relation: Relation = self._scan(number)
                    qualifier = qualifier if alias_name else self.occurrences.found[number].name
                elif (name := node.meta.get("cte")) is not None:
                    cte, seen = ctes[name]
                    listed = [found.name for found in cte.args["alias"].columns]
                    relation = self._renamed(self.read(cte.this, seen), listed, cte)
                    qualifier = (alias_name or node.name,)
                else:
                    raise unclear(node, "FROM", "a function that makes a table is not followed.", "")
            case exp.Subquery():
                if (sample := node.args.get("sample")) is not None:
                    raise unclear(sample, *_TABLE_REASONS["sample"])
                relation = self.read(node, ctes, outer)
            case exp.Values():
                relation, names = Constant(tuple(name.lower() for name in names)), []
            case _:
                raise unclear(node, type(node).__name__.upper(), "it is not understood in FROM.", "")
        return self._item(self._renamed(relation, names, node), qualifier, join)

    def _generate(self, lateral: exp.Expr, block: Block, scope: Scope, ctes: Ctes) -> None:
        if not isinstance(lateral, exp.Lateral) or not lateral.args.get("view"):
            raise self.columns.unclear(lateral, "LATERAL", "a lateral subquery is not followed.", "Write it as a join.")
        self._resolved(lateral.this, block, scope, ctes)
        alias = lateral.args["alias"]
        names = tuple(found.name.lower() for found in alias.columns)
        block.items.append(self._item(Constant(names), (alias.name,), Join.GENERATOR))

    def _join(self, join: exp.Expr, block: Block, scope: Scope, ctes: Ctes) -> None:
        side, kind, method = (join.args.get(key) or "" for key in ("side", "kind", "method"))
        if method:
            reason = "its columns depend on the tables' columns."
            raise self.columns.unclear(join, f"{method} JOIN", reason, "Name them: ON ….")
        if (side, kind) not in _JOINS:
            reason = "a key may come from its nullable side."
            operator = f"{side} {kind} JOIN".replace("  ", " ").strip()
            raise self.columns.unclear(join, operator, reason, "Use LEFT JOIN, from the table that has the key.")
        if isinstance(join.this, exp.Lateral):
            self._generate(join.this, block, scope, ctes)
            return
        item = self._from(join.this, ctes, scope.outer, _JOINS[side, kind])
        before = scope.visible
        block.items.append(item)
        for node in join.args.get("using") or ():
            sides = self._using(node, before, item, scope)
            block.edges += equalities(sides, scope, item)
        if (on := join.args.get("on")) is not None:
            block.edges += equalities(self._resolved(on, block, scope, ctes), scope, item)
        if item.join in (Join.SEMI, Join.ANTI):
            item.qualifier = HIDDEN

    def _using(self, node: exp.Expr, before: Sequence[Item], item: Item, scope: Scope) -> exp.EQ:
        name = node.name.lower()
        found = [each for each in before if name in each.relation.names]
        left = scope.merged.get(name) or (found[0] if len(found) == 1 else None)
        if left is None or name not in item.relation.names:
            reason = f"column {name!r} is not known, or in several tables."
            raise self.columns.unclear(node, "USING", reason, "Use ON.")
        scope.merged[name] = left
        return exp.EQ(this=self.columns.read(left, name), expression=self.columns.read(item, name))

    def _outputs(self, select: exp.Select, block: Block, scope: Scope, ctes: Ctes) -> None:
        for number, projection in enumerate(select.expressions):
            if projection.is_star:
                named = star_of(projection, scope, self.columns)
            else:
                resolved = self._resolved(projection.unalias(), block, scope, ctes, aliases=block.outputs)
                named = [(projection.alias_or_name.lower() or f"#{number + 1}", resolved)]
            for name, resolved in named:
                if name in block.outputs:
                    reason = f"it has two columns called {name!r}."
                    raise self.columns.unclear(projection, "SELECT", reason, "Rename one with AS.")
                block.outputs[name] = resolved

    # Expressions.

    def _resolved(
        self,
        expression: exp.Expr,
        block: Block,
        scope: Scope,
        ctes: Ctes,
        *,
        aliases: Mapping[str, exp.Expr] | None = None,
        is_condition: bool = False,
    ) -> exp.Expr:
        """An expression over the items of a scope; subqueries in it are noted, and stand for something unknown.

        ``is_condition``: rows for which it does not hold are left out.
        """
        self.obstacles += functions.doubts(expression, self.declared, self.columns.text.place_of)
        root = exp.Paren(this=expression.copy())
        originals = [found for found in expression.find_all(exp.Query) if not _is_inside_query(found, expression)]
        copies = [found for found in root.find_all(exp.Query) if not _is_inside_query(found, root)]
        memberships = (
            {id(part) for part in conjuncts(expression) if isinstance(part, exp.In)} if is_condition else set()
        )
        for original, copy in zip(originals, copies, strict=True):
            relation = self.read(original, ctes, replace(scope))
            around = original.parent
            is_member = around is not None and id(around) in memberships
            compared = self._resolved(around.this, block, scope, ctes) if is_member and around is not None else None
            self._attach(original, relation, compared, block, scope)
            copy.replace(exp.Anonymous(this=f"#subquery {self._items}"))
        for star in root.find_all(exp.Star):
            if not isinstance(star.parent, exp.Count):
                raise self.columns.unclear(
                    star, "*", "it is not expanded inside of an expression.", "Name the columns."
                )
        for found in list(root.find_all(exp.Column)):
            if not isinstance(found.this, exp.Star):
                found.replace(self.columns.resolved(found, scope, aliases or {}).copy())
        for paren in list(root.find_all(exp.Paren)):
            if paren is not root:
                paren.replace(paren.this)
        result: exp.Expr = root.this
        return result

    def _attach(
        self, original: exp.Expr, relation: Relation, compared: exp.Expr | None, block: Block, scope: Scope
    ) -> None:
        """Note a subquery: as a join by equal columns, if each row looks at the rows with equal columns alone."""
        inner = looked_at(relation)
        item = self._item(inner, HIDDEN, Join.SEMI)
        edges = subquery_edges(item, compared, scope)
        if edges:
            block.items.append(item)
            block.edges += edges
        else:
            block.subqueries.append((relation, any_row_depends(self.columns.text.place_of(original))))


def _others(node: exp.Expr, known: frozenset[str] | set[str]) -> list[str]:
    """Which parts of a node are there that nobody looks at."""
    return [key for key, value in node.args.items() if value and key not in known]


def _is_inside_query(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether a node is below another query that is below the root."""
    at = node
    while at is not root and at.parent is not None:
        at = at.parent
        if isinstance(at, exp.Query) and (at is not root or isinstance(root, exp.Query)):
            return True
    return False
