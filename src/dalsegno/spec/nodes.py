"""A document as a tree of values that know where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a text, counted from 1; line 0 stands for a value that was not read from a text."""

    line: int = 0
    column: int = 0


NOWHERE = SourceLocation()


@dataclass(frozen=True, slots=True)
class Scalar:
    value: str | int | float | bool | None
    mark: SourceLocation = NOWHERE
    #: As it was written, escapes and folding resolved.
    text: str = ""
    #: ``|``, ``>``, one of the quotes, or nothing.
    style: str = ""
    #: Where it ends, exclusively.
    end: SourceLocation = NOWHERE


@dataclass(frozen=True, slots=True)
class ListNode:
    mark: SourceLocation = NOWHERE
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MapNode:
    mark: SourceLocation = NOWHERE
    #: By the text of the key; a key that is a number or a truth value is known by how it is written.
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)


Node = Scalar | ListNode | MapNode


def plain(node: Node) -> Any:
    """The values alone. Documents are at most ``documents.DEPTH`` deep, so this may call itself."""
    match node:
        case Scalar():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MapNode():
            return {key: plain(value) for key, (_, value) in node.entries.items()}


def from_plain(data: Any) -> Node:
    """Values that were not read from a text, such as what the store keeps."""
    if isinstance(data, Mapping):
        return MapNode(entries={str(key): (Scalar(str(key), text=str(key)), from_plain(data[key])) for key in data})
    if isinstance(data, Sequence) and not isinstance(data, str):
        return ListNode(items=[from_plain(item) for item in data])
    if data is None or isinstance(data, str | int | float | bool):
        return Scalar(data, text=str(data).lower() if isinstance(data, bool) else str(data))
    raise TypeError(f"{type(data).__name__} has no place in a workflow: {data!r}")
