"""What a query is: its sources and where it names them, its outputs, and what keeps it from being incremental."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dalsegno.errors import UserError
from dalsegno.rewrite.expressions import conjuncts, kind_in
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.functions import name_of, needs_order, window_function
from dalsegno.rewrite.lineage import Origin, origins_in
from dalsegno.rewrite.occurrences import Occurrences, finder
from dalsegno.rewrite.reading import Reader
from dalsegno.rewrite.relations import (
    Barrier,
    Block,
    Obstacle,
    Occurrence,
    Relation,
    Scan,
    Verdict,
    blocks_in,
    scans_in,
)
from dalsegno.rewrite.scopes import HIDDEN
from dalsegno.rewrite.tables import Name, Table, quoted, type_of
from dalsegno.rewrite.texts import Edit, Place, QueryText
from dalsegno.spark.forms.trees import is_now


@dataclass(frozen=True)
class Lookback:
    """A filter that takes another window of a source each day. An incremental query does not need it."""

    column: str
    place: Place | None

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"The filter on {self.column}{where} moves with time. Remove it: late rows are processed when they come."


@dataclass(frozen=True)
class Analysis:
    """A query that was understood as far as it can be."""

    text: QueryText
    root: Relation
    #: The names of the output columns, as the query writes them.
    outputs: tuple[str, ...]
    occurrences: tuple[Occurrence, ...]
    obstacles: tuple[Obstacle, ...]
    lookbacks: tuple[Lookback, ...]
    #: What must be written differently where a table is replaced by a subquery.
    edits: tuple[Edit, ...]
    #: The types of output columns, as Spark's own analysis says.
    kinds: Mapping[str, str] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[Name, ...]:
        """The tables that the query reads, each once."""
        return tuple(dict.fromkeys(occurrence.name for occurrence in self.occurrences))

    @property
    def everywhere(self) -> tuple[Obstacle, ...]:
        """Obstacles that matter whatever changed."""
        barriers = set(_barriers(self.root))
        return tuple(each for each in self.obstacles if each.verdict is Verdict.FULL and each not in barriers)

    def blocking(self, scans: Iterable[Scan]) -> list[Obstacle]:
        """What no change of some reads can be followed through."""
        return [obstacle for scan in scans for obstacle in _above(self.root, scan)]

    @property
    def refusals(self) -> tuple[Obstacle, ...]:
        """Why nobody can say what the target should hold."""
        return tuple(obstacle for obstacle in self.obstacles if obstacle.verdict is Verdict.REFUSED)

    @property
    def ties(self) -> tuple[Fact, ...]:
        """Window functions whose value is open where rows tie in their ORDER BY."""
        found = {name_of(window_function(window)) for _, window in self.ordered_windows}
        return tuple(Fact(FactKind.NO_TIES, (name,)) for name in sorted(found))

    @property
    def ordered_windows(self) -> tuple[tuple[Block, exp.Window], ...]:
        """Window functions that look at the order of rows, and where they stand."""
        return tuple(
            (block, window)
            for block in blocks_in(self.root)
            for _, window in block.windows
            if isinstance(window, exp.Window) and needs_order(window_function(window))
        )

    def origins(self, output: str) -> frozenset[Origin] | None:
        """The columns of sources that an output is computed from; None if that is not known."""
        return origins_in(self.root, output.lower())

    @property
    def grouping(self) -> tuple[str, ...] | None:
        """The outputs that the query groups by at its end; None if it does not end in a GROUP BY."""
        block = self.root
        if not isinstance(block, Block) or block.groups is None:
            return None
        return tuple(name for name in self.outputs if block.outputs[name.lower()] in block.groups)

    def scans(self, tables: Iterable[Name]) -> list[Scan]:
        """The reads of some tables."""
        wanted = set(tables)
        return [scan for scan in scans_in(self.root) if scan.table.name in wanted]

    def kind(self, output: str) -> str | None:
        """The type of an output column, if it is known."""
        return self.kinds.get(output.lower()) or kind_in(self.root, output.lower())


def analyse(
    query: str,
    sources: Sequence[Table],
    *,
    current: Name = (),
    deterministic: Iterable[str] = (),
    kinds: Mapping[str, str] | None = None,
) -> Analysis:
    """Read a query.

    ``current``: the catalog and namespace of names without. ``deterministic``: functions of the user that depend on
    their arguments alone. ``kinds``: the types of the output columns, if Spark has analysed the query.
    """
    text = QueryText.of(query)
    tree = text.parsed()
    reader = Reader(text, _occurrences(text, tree, sources, current), frozenset(map(str.lower, deterministic)))
    root = reader.read(tree)
    obstacles = [*reader.obstacles, *_barriers(root), *_unseen(reader, root)]
    lookbacks, moving = _lookbacks(tree, text)
    used = reader.columns.used
    return Analysis(
        text,
        root,
        _output_names(tree, root),
        tuple(_with_columns(found, used.get(found.number, set())) for found in reader.occurrences.found),
        tuple(dict.fromkeys([*obstacles, *moving])),
        tuple(lookbacks),
        tuple(reader.columns.edits),
        {name.lower(): type_of(kind) for name, kind in (kinds or {}).items()},
    )


def _occurrences(text: QueryText, tree: exp.Expr, sources: Sequence[Table], current: Name) -> Occurrences:
    find = finder({tuple(part.lower() for part in source.name): source for source in sources}, current)

    def table_of(name: Name, place: Place) -> Table:
        if (found := find(name, place)) is not None:
            return found
        known = ", ".join(map(str, sources)) or "none"
        raise UserError(f"The query reads {'.'.join(name)} ({place}), which is not among its sources: {known}.")

    return Occurrences.of(text, tree, table_of)


def tables_in(query: str) -> tuple[Name, ...]:
    """The names of the tables that a query reads, as it writes them: what callers have to hand to ``analyse``."""
    text = QueryText.of(query)
    found = Occurrences.of(text, text.parsed(), lambda name, _: Table(name, {})).found
    return tuple(dict.fromkeys(occurrence.name for occurrence in found))


def expanded(query: str, sources: Sequence[Table], *, current: Name = ()) -> str:
    """The query with each ``*`` replaced by the tables' columns, so that columns that are added change nothing."""
    text = QueryText.of(query)
    tree = text.parsed()
    root = Reader(text, _occurrences(text, tree, sources, current)).read(tree)
    stars = [(star, block) for block in blocks_in(root) for star in block.node.expressions if star.is_star]
    edits = [Edit(*_star(star, block)) for star, block in stars]
    return text.edited(dict.fromkeys(edits))


def _star(star: exp.Expr, block: Block) -> tuple[int, int, str]:
    """Where a star stands, and the columns in its place."""
    inner = star.this if isinstance(star, exp.Column) else star
    qualifiers = star.parts[:-1] if isinstance(star, exp.Column) else []
    start = min([inner.meta["start"], *(part.meta["start"] for part in qualifiers)])
    if isinstance(block.node.parent, exp.Exists):
        # Only whether there are rows counts, so no column has to be read, or compared.
        return start, inner.meta["end"] + 1, "1"
    wanted = tuple(part.name.lower() for part in qualifiers)
    names = []
    for item in block.items:
        if item.qualifier == HIDDEN or (wanted and item.qualifier[-len(wanted) :] != wanted):
            continue
        prefix = f"{quoted(item.qualifier[-1])}." if item.qualifier[-1] else ""
        written = item.relation.table.columns if isinstance(item.relation, Scan) else item.relation.names
        names += [prefix + quoted(name) for name in written]
    return start, inner.meta["end"] + 1, ", ".join(names)


def _barriers(root: Relation) -> Iterable[Obstacle]:
    match root:
        case Scan():
            return
        case Block():
            for item in root.items:
                yield from _barriers(item.relation)
            for subquery, _ in root.subqueries:
                yield from _barriers(subquery)
        case Barrier():
            yield root.obstacle
            for child in root.children:
                yield from _barriers(child)
        case _:
            for child in root.children:
                yield from _barriers(child)


def _above(relation: Relation, scan: Scan) -> Iterable[Obstacle]:
    """The obstacles between a query and one of its reads."""
    if scan not in set(scans_in(relation)):
        return
    match relation:
        case Scan():
            return
        case Block():
            yield from (obstacle for subquery, obstacle in relation.subqueries if scan in set(scans_in(subquery)))
            for item in relation.items:
                yield from _above(item.relation, scan)
        case _:
            if isinstance(relation, Barrier):
                yield relation.obstacle
            for child in relation.children:
                yield from _above(child, scan)


def _unseen(reader: Reader, root: Relation) -> Iterable[Obstacle]:
    """What the query names where no change is followed. A CTE that nobody reads, and an order, change no row."""
    seen = {scan.occurrence for scan in scans_in(root)}
    for occurrence, node in zip(reader.occurrences.found, reader.occurrences.nodes, strict=True):
        if occurrence.number in seen:
            continue
        reader.columns.read_all(occurrence)
        if node.find_ancestor(exp.CTE, exp.Order) is None:
            yield Obstacle(str(occurrence.table), "it is named where no change can be followed.", "", occurrence.place)


def _lookbacks(tree: exp.Expr, text: QueryText) -> tuple[list[Lookback], list[Obstacle]]:
    """Filters that compare a column with the time of day or with a parameter."""
    found, moving = [], []
    for where in tree.find_all(exp.Where):
        for part in conjuncts(where.this):
            if not isinstance(part, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ | exp.Between):
                continue
            columns = [
                side for side in part.iter_expressions() if isinstance(side.unnest(), exp.Column) and not is_now(side)
            ]
            others = [side for side in part.iter_expressions() if side not in columns]
            parameters = [node for side in others for node in side.find_all(exp.Parameter, exp.Placeholder)]
            is_moving = parameters or any(is_now(node) for side in others for node in side.walk())
            if len(columns) == 1 and is_moving:
                found.append(Lookback(columns[0].unnest().name, text.place_of(part)))
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        moving.append(
            Obstacle(
                f"parameter {node.name or 'in the query'}",
                "the result changes with it, without any change of a source.",
                "Remove it, or give it a fixed value.",
                text.place_of(node),
                Verdict.REFUSED,
            )
        )
    return found, moving


def _with_columns(occurrence: Occurrence, used: set[str]) -> Occurrence:
    """With the columns in the table's order; metadata columns, which are not among them, come last."""
    known = [name for name in occurrence.table.columns if name in used]
    return replace(occurrence, columns=(*known, *sorted(used - set(known))))


def _output_names(tree: exp.Query, root: Relation) -> tuple[str, ...]:
    names = root.names
    if isinstance(root, Barrier) and ("*" in names or len(set(names)) != len(names)):
        raise UserError(f"The output columns are not known. {root.obstacle}", hint="Name each output column.")
    if len(set(names)) != len(names):
        raise UserError("The query has two columns of one name.", hint="Give each output column its own name.")
    if not names or "" in names or any(name.startswith(("#", "*")) for name in names):
        raise UserError("An output column has no name.", hint="Name each expression: … AS name.")
    written = {name.lower(): name for name in tree.named_selects}
    return tuple(written.get(name, name) for name in names)
