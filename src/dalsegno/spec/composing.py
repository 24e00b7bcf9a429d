"""Builds the tree of a document from its pieces, within limits.

The pieces come one by one, and no call depends on how deep they are nested: the stack is a list. So no text, however
hostile, can use up the interpreter's stack or, through aliases of aliases, its memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dalsegno.model.stored_text import fault_of_text, readable
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation
from dalsegno.spec.problems import Problems

DEPTH = 64
NODES = 300_000


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    node: ListNode | MapNode
    anchor: str | None
    #: How many nodes there were before it.
    before: int
    #: How deep it is inside.
    height: int = 1
    key: Scalar | None = None


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    size: int
    height: int


class Composer:
    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0

    @property
    def inside(self) -> type[ListNode] | type[MapNode] | None:
        return type(self._stack[-1].node) if self._stack else None

    def scalar(self, scalar: Scalar, anchor: str | None = None) -> None:
        if fault := fault_of_text(scalar.text):
            self._problems.add(f"this text holds {fault}", scalar.mark)
            text = readable(scalar.text)
            scalar = replace(scalar, text=text, value=text if isinstance(scalar.value, str) else scalar.value)
        self._take(scalar, size=1, height=0)
        if anchor:
            self._anchors[anchor] = _Anchored(scalar, 1, 0)

    def begin(self, node: ListNode | MapNode, anchor: str | None = None) -> None:
        if len(self._stack) >= DEPTH:
            self._problems.stop(f"this is nested more than {DEPTH} levels deep", node.mark)
        self._stack.append(_Open(node, anchor, self._count))

    def end(self) -> None:
        ended = self._stack.pop()
        size = self._count - ended.before + 1
        if ended.anchor:
            self._anchors[ended.anchor] = _Anchored(ended.node, size, ended.height)
        self._take(ended.node, size=1, height=ended.height)

    def alias(self, name: str, mark: SourceLocation) -> None:
        if any(each.anchor == name for each in self._stack):
            self._problems.stop(f"*{name} stands inside of what it repeats", mark)
        if name not in self._anchors:
            self._problems.stop(f"there is no anchor &{name} before this", mark)
        anchored = self._anchors[name]
        if len(self._stack) + anchored.height > DEPTH:
            self._problems.stop(f"with *{name}, this is nested more than {DEPTH} levels deep", mark)
        self._take(anchored.node, size=anchored.size, height=anchored.height, mark=mark)

    def _take(self, node: Node, *, size: int, height: int, mark: SourceLocation | None = None) -> None:
        mark = mark or node.mark
        self._count += size
        if self._count > NODES:
            self._problems.stop(f"the document has more than {NODES:,} values, aliases counted in full", mark)
        if not self._stack:
            self.root = node
            return
        top = self._stack[-1]
        top.height = max(top.height, height + 1)
        if isinstance(top.node, ListNode):
            top.node.items.append(node)
        elif top.key is None:
            top.key = self._key(node, mark)
        else:
            self._put(top.node, top.key, node)
            top.key = None

    def _key(self, node: Node, mark: SourceLocation) -> Scalar:
        if isinstance(node, Scalar):
            return Scalar(node.value, mark, node.text, node.style, node.end)
        self._problems.add("a key must be a text, found a list or a mapping", mark)
        return Scalar(None, mark, f"?{mark.line}:{mark.column}")

    def _put(self, mapping: MapNode, key: Scalar, value: Node) -> None:
        if key.text in mapping.entries:
            first = mapping.entries[key.text][0].mark
            self._problems.add(
                f"the key {key.text!r} is given twice", key.mark, hint=f"the first one is in line {first.line}"
            )
            return
        mapping.entries[key.text] = (key, value)
