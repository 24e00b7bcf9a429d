"""Reading the fields of a mapping, and saying what is wrong with each.

A field that is null counts as left out. Whatever is wrong is noted, and a value that the reader can go on with is
returned, so that one problem does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation, plain
from dalsegno.spec.problems import Problems, meant

#: How many of a mapping's parameters are compared with the names of fields.
_LOOKED_AT = 200

Chosen = TypeVar("Chosen", bound=StrEnum)


class Fields:
    """The fields of one mapping; those that were asked for count as known."""

    def __init__(self, node: MapNode, path: str, problems: Problems) -> None:
        self.node = node
        self.path = path
        self.problems = problems
        self._known: set[str] = set()

    @property
    def mark(self) -> SourceLocation:
        return self.node.mark

    def find(self, *names: str) -> Node | None:
        """The field by the first of these names that is given; giving it by two is a problem."""
        self._known.update(names)
        given = [name for name in names if name in self.node.entries and not is_null(self.node.entries[name][1])]
        if len(given) > 1:
            self.add(f"{given[0]!r} and {given[1]!r} mean the same: give one", given[1])
        return self.node.entries[given[0]][1] if given else None

    def written(self, *names: str) -> str:
        """The name by which it was given, for messages."""
        return next((name for name in names if name in self.node.entries), names[0])

    def place(self, *names: str) -> str:
        return f"{self.path}.{self.written(*names)}" if self.path else self.written(*names)

    def key_mark(self, *names: str) -> SourceLocation:
        name = self.written(*names)
        return self.node.entries[name][0].mark if name in self.node.entries else self.mark

    def add(self, message: str, name: str | None = None, hint: str | None = None, *, warning: bool = False) -> None:
        mark = self._value_mark(name) if name else self.mark
        self.problems.add(message, mark, self.place(name) if name else self.path, hint, warning=warning)

    def at(self, message: str, node: Node, name: str, hint: str | None = None) -> None:
        self.problems.add(message, node.mark, self.place(name), hint)

    # Values.

    def text(self, *names: str, limit: int | None = None) -> str | None:
        node = self.find(*names)
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self.at(f"{self.written(*names)!r} must be a text, found {kind_of(node)}", node, *names[:1])
            return None
        text = node.value if isinstance(node.value, str) else node.text
        if limit is not None and len(text) > limit:
            self.at(f"{self.written(*names)!r} has {len(text)} characters; {limit} are the limit", node, *names[:1])
        return text

    def number(self, *names: str, low: int, high: int) -> int | None:
        node = self.find(*names)
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            found = repr(value) if isinstance(node, Scalar) else kind_of(node)
            expected = f"a whole number from {low} to {high}"
            self.at(f"{self.written(*names)!r} must be {expected}, found {found}", node, *names[:1])
            return None
        return value

    def flag(self, *names: str) -> bool | None:
        node = self.find(*names)
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if not isinstance(value, bool):
            found = repr(value) if isinstance(node, Scalar) else kind_of(node)
            self.at(f"{self.written(*names)!r} must be true or false, found {found}", node, *names[:1])
            return None
        return value

    def choice(self, kind: type[Chosen], *names: str) -> Chosen | None:
        node = self.find(*names)
        return chosen(kind, node, self.written(*names), self.place(*names), self.problems) if node else None

    def mapping(self, *names: str) -> Fields | None:
        node = self.find(*names)
        if node is None:
            return None
        if not isinstance(node, MapNode):
            self.at(f"{self.written(*names)!r} must be a mapping, found {kind_of(node)}", node, *names[:1])
            return None
        return Fields(node, self.place(*names), self.problems)

    def items(self, *names: str) -> list[Node]:
        node = self.find(*names)
        if node is None:
            return []
        if not isinstance(node, ListNode):
            self.at(f"{self.written(*names)!r} must be a list, found {kind_of(node)}", node, *names[:1])
            return []
        return node.items

    def texts(self, *names: str) -> list[tuple[str, SourceLocation]]:
        """A list of texts; a single text counts as one."""
        node = self.find(*names)
        items: Iterable[Node] = [node] if isinstance(node, Scalar) else self.items(*names)
        found = []
        for item in items:
            if isinstance(item, Scalar) and item.value is not None:
                found.append((str(item.value), item.mark))
            else:
                self.at(f"{self.written(*names)!r} must hold texts, found {kind_of(item)}", item, *names[:1])
        return found

    def data(self, *names: str) -> dict[str, Any]:
        """A mapping that is kept as it is."""
        found = self.mapping(*names)
        return plain(found.node) if found else {}

    def faultless(self, name: str, text: str | None, fault: Callable[[str], str | None]) -> str | None:
        """The text, whose fault, if it has one, is noted."""
        if text is not None and (found := fault(text)):
            self.problems.add(f"{text!r} cannot be the {name}: {found}", self._value_mark(name), self.place(name))
        return text

    def _value_mark(self, name: str) -> SourceLocation:
        """Where a single value stands; of others, where their key does, which is easier to find."""
        if name not in self.node.entries:
            return self.mark
        key, value = self.node.entries[name]
        return value.mark if isinstance(value, Scalar) and value.value is not None else key.mark

    # The rest.

    def rest(self) -> Iterator[tuple[Scalar, Node]]:
        """What nobody asked for."""
        return (entry for name, entry in self.node.entries.items() if name not in self._known)

    def lookalikes(self, instead: Callable[[str, Collection[str]], str | None]) -> Iterator[tuple[Scalar, str]]:
        """What nobody asked for and may be a misspelt field, with a hint: ``instead`` gives one, by the known names."""
        for key, _ in islice(self.rest(), _LOOKED_AT):
            if hint := instead(key.text, self._known):
                yield key, hint

    def refuse_rest(self, what: str) -> None:
        for key, _ in self.rest():
            hint = None if self.problems.is_full else meant(key.text, self._known)
            hint = hint or f"known are {', '.join(sorted(self._known))}"
            self.problems.add(f"{what} has no field {key.text!r}", key.mark, f"{self.path}.{key.text}", hint)


def chosen(kind: type[Chosen], node: Node, name: str, path: str, problems: Problems) -> Chosen | None:
    """One of some words; upper and lower case do not matter."""
    text = node.text if isinstance(node, Scalar) else kind_of(node)
    by_lower = {str(each).lower(): each for each in kind}
    if isinstance(node, Scalar) and text.lower() in by_lower:
        return by_lower[text.lower()]
    hint = meant(text, list(kind)) or f"expected one of {', '.join(kind)}"
    problems.add(f"{name!r} cannot be {text!r}", node.mark, path, hint)
    return None


def is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def kind_of(node: Node) -> str:
    match node:
        case MapNode():
            return "a mapping"
        case ListNode():
            return "a list"
        case Scalar(value=None):
            return "nothing"
        case _:
            return repr(node.value)
