"""How steps follow each other, in every spelling.

JSON gives each step its successors with conditions. YAML has transitions such as ``IF a > 0 THEN b`` and
``OTHERWISE c``, a ``dag:`` of chains such as ``a -> b -> c``, and ``depends_on``. All become edges, each with a
condition or with none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from dalsegno.spec.fields import Fields, is_null, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading

_STEP = r"[_a-zA-Z][.\-_a-zA-Z0-9]*"
_STAGE = rf"{_STEP}(?:\s*,\s*{_STEP})*"
_CHAIN = rf"{_STAGE}(?:\s*->\s*{_STAGE})*"
_SIMPLE = re.compile(rf"\s*(?P<chain>{_CHAIN})\s*")
_IF = re.compile(rf"\s*IF\s+(?P<condition>.+)(?:\s*:\s*|\s+THEN\s+)(?P<chain>{_CHAIN})\s*", re.I | re.S)
_OTHERWISE = re.compile(rf"\s*OTHERWISE(?:\s*:\s*|\s+)(?P<chain>{_CHAIN})\s*", re.I)
_NEXT_STATEMENT = re.compile(r"\n(?=\s*(?:IF|OTHERWISE)\b)", re.I)
_SPELLINGS = "expected 'step', 'IF condition THEN step' or 'OTHERWISE step', where a step may be a chain 'a -> b'"
#: A regular expression may take long over a text that is longer than anybody's condition.
_LONGEST = 12_000


@dataclass(frozen=True)
class Edge:
    before: str
    after: str
    #: SEL; None: always.
    condition: str | None
    mark: SourceLocation


@dataclass
class Edges:
    """The edges among the steps of one list."""

    reading: Reading
    found: dict[str, dict[str, Edge]] = field(default_factory=dict)
    #: The steps that have a transition of their own.
    own: set[str] = field(default_factory=set)
    #: Steps of which a dag says what follows, even if that is nothing.
    named: dict[str, SourceLocation] = field(default_factory=dict)
    #: What JSON may give beside the successors, to be compared with them.
    predecessors: dict[str, tuple[set[str], SourceLocation]] = field(default_factory=dict)

    def add(self, before: str, after: str, condition: str | None, mark: SourceLocation) -> None:
        """An edge that is given twice holds if one of its conditions does."""
        known = self.found.setdefault(before, {}).get(after)
        if known is not None:
            condition = None if None in (condition, known.condition) else f"({known.condition}) || ({condition})"
            if known.condition == condition:
                return
        self.found[before][after] = Edge(before, after, condition, mark)

    def chain(self, chain: str, mark: SourceLocation) -> list[str]:
        """Connect the stages of ``a -> b, c -> d``; the first of them is returned."""
        stages = [[step.strip() for step in stage.split(",")] for stage in chain.split("->")]
        for earlier, later in pairwise(stages):
            for before in earlier:
                for after in later:
                    self.add(before, after, None, mark)
        return stages[0]

    def successors(self, step: str) -> dict[str, str | None]:
        return {after: edge.condition for after, edge in self.found.get(step, {}).items()}


@dataclass(frozen=True)
class _Statement:
    chain: str
    source: Scalar
    condition: str | None = None
    is_otherwise: bool = False
    #: Where the condition begins in the source.
    offset: int = 0


def read_transition(step: str, fields: Fields, edges: Edges) -> None:
    """A step's own ``transition``."""
    node = fields.find("transition")
    if node is None:
        return
    path = fields.place("transition")
    if isinstance(node, MapNode) and set(node.entries) <= {"successors", "predecessors"}:
        _successors(step, Fields(node, path, fields.problems), edges)
    else:
        _follow(step, node, path, edges)
    if edges.found.get(step):
        edges.own.add(step)


def _successors(step: str, fields: Fields, edges: Edges) -> None:
    inner = fields.mapping("successors")
    for name, (key, node) in inner.node.entries.items() if inner else ():
        if not isinstance(node, Scalar):
            fields.at(f"the condition of {name!r} must be a text, found {kind_of(node)}", node, "successors")
            continue
        edges.add(step, name, _condition(node.text, node, f"{fields.path}.successors.{name}", edges.reading), key.mark)
    if predecessors := fields.texts("predecessors"):
        edges.predecessors[step] = ({name for name, _ in predecessors}, fields.key_mark("predecessors"))


def _condition(text: str, source: Scalar, path: str, reading: Reading, offset: int = 0) -> str | None:
    if not text.strip() or text.strip(" \n;").lower() == "true" or source.value is None:
        return None
    return reading.expression(text, source, path, offset)


def read_dag(node: Node, path: str, order: list[str], edges: Edges) -> None:
    """``dag:`` of a list of steps; a step's own transition wins over what it says."""
    of_dag = Edges(edges.reading)
    word = node.text.strip().lower() if isinstance(node, Scalar) else ""
    if word == "sequential":
        for before, after in pairwise(order):
            of_dag.add(before, after, None, node.mark)
    elif word != "parallel":
        _chains(node, path, of_dag)
    for before, outgoing in of_dag.found.items():
        if before not in edges.own:
            for edge in outgoing.values():
                edges.add(edge.before, edge.after, edge.condition, edge.mark)
        elif word != "sequential":
            mark = next(iter(outgoing.values())).mark
            message = f"{before!r} has a transition of its own, which counts; what dag says of it does not"
            edges.reading.problems.add(message, mark, path, warning=True)
    edges.named |= of_dag.named


def _chains(node: Node, path: str, edges: Edges) -> None:
    match node:
        case ListNode():
            for number, item in enumerate(node.items):
                _chains(item, f"{path}[{number}]", edges)
        case MapNode():
            _map(node, path, edges)
        case Scalar():
            _chain(node, path, edges)


def _map(node: MapNode, path: str, edges: Edges) -> None:
    entries = dict(node.entries)
    statements = {text: entries.pop(text) for text in list(entries) if _is_statement(text)}
    if statements:
        # They were not indented under their step.
        above = [step for step, (_, value) in entries.items() if is_null(value)]
        key = next(iter(statements.values()))[0]
        if len(above) != 1:
            edges.reading.problems.add(f"{key.text!r} belongs to no step", key.mark, path, "indent it under one")
            return
        entries[above[0]] = (entries[above[0]][0], MapNode(key.mark, statements))
    for step, (key, value) in entries.items():
        edges.named[step] = key.mark
        _follow(step, value, f"{path}.{step}", edges)


def _is_statement(text: str) -> bool:
    return bool(_IF.fullmatch(f"{text}: step")) or text.strip().upper() == "OTHERWISE"


def _chain(node: Node, path: str, edges: Edges) -> None:
    text = node.text.strip() if isinstance(node, Scalar) and isinstance(node.value, str) else ""
    near = None if "->" in text or text in edges.reading.steps else meant(text, ("sequential", "parallel"))
    if near or len(text) > _LONGEST or not _SIMPLE.fullmatch(text):
        hint = near or "write 'sequential', 'parallel', or chains such as 'a -> b -> c'"
        edges.reading.problems.add(f"{kind_of(node)} is not an order of steps", node.mark, path, hint)
        return
    for step in edges.chain(text, node.mark):
        edges.named.setdefault(step, node.mark)


def _follow(step: str, node: Node, path: str, edges: Edges) -> None:
    """What follows on a step."""
    problems = edges.reading.problems
    statements = _statements(node, path, edges.reading)
    conditions = [each.condition for each in statements if each.condition]
    for number, statement in enumerate(statements):
        condition = None
        place = statement.source.mark
        if statement.is_otherwise:
            if number < len(statements) - 1:
                problems.add("OTHERWISE must be the last transition", place, path)
            condition = f"!(({') || ('.join(conditions)}))" if conditions else None
        elif statement.condition:
            condition = _condition(statement.condition, statement.source, path, edges.reading, statement.offset)
        for first in edges.chain(statement.chain, place):
            edges.add(step, first, condition, place)


def _statements(node: Node, path: str, reading: Reading) -> list[_Statement]:
    found: list[_Statement] = []
    match node:
        case Scalar(value=None):
            return []
        case Scalar():
            for part in _NEXT_STATEMENT.split(node.text):
                found += _statement(part, node, path, reading) if part.strip() else []
        case ListNode():
            for item in node.items:
                found += _statements(item, path, reading)
        case MapNode():
            for text, (key, value) in node.entries.items():
                target = value.text if isinstance(value, Scalar) and value.value is not None else ""
                if isinstance(value, ListNode) and all(isinstance(item, Scalar) for item in value.items):
                    target = ", ".join(item.text for item in value.items if isinstance(item, Scalar))
                found += _statement(f"{text}: {target}", key, path, reading)
    return found


def _statement(text: str, source: Scalar, path: str, reading: Reading) -> list[_Statement]:
    if len(text) <= _LONGEST:
        if found := _OTHERWISE.fullmatch(text):
            return [_Statement(found["chain"], source, is_otherwise=True)]
        if found := _IF.fullmatch(text):
            condition = found["condition"].strip().rstrip(":; \n")
            return [_Statement(found["chain"], source, condition, offset=found.start("condition"))]
        if found := _SIMPLE.fullmatch(text):
            return [_Statement(found["chain"], source)]
    reading.problems.add(f"{text.strip()[:100]!r} is not a transition", source.mark, path, _SPELLINGS)
    return []
