"""What starts runs by itself, of whichever kind: ``triggers`` has the kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dalsegno.model.workflow import Trigger
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node
from dalsegno.spec.reading.context import Reading
from dalsegno.triggers.spec import TriggerLanguage, languages

Places = Iterable[tuple[Node, str]]


def read_triggers(fields: Fields, reading: Reading) -> tuple[Trigger, ...]:
    """A list for each kind, as in JSON: ``KIND_triggers``."""
    found: list[Trigger] = []
    for kind, language in languages().items():
        name = f"{kind}_triggers"
        items = _numbered(fields.items(name), fields.place(name))
        found += [language.read_stored(each, reading) for each in _mappings(items, reading)]
    return tuple(found)


def read_front_door(node: Node, path: str, reading: Reading) -> tuple[Trigger, ...]:
    """``Trigger:`` beside the workflow: one trigger, or a list of them."""
    items = _numbered(node.items, path) if isinstance(node, ListNode) else [(node, path)]
    return tuple(_language_of(fields).read(fields, reading) for fields in _mappings(items, reading))


def _language_of(fields: Fields) -> TriggerLanguage[Any]:
    """That of the kind which a field names; of two, the one that is not the default."""
    default, *others = languages().values()
    return next((each for each in others if any(name in fields.node.entries for name in each.fields)), default)


def in_order_of_kinds(triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    kinds = list(languages())
    return tuple(sorted(triggers, key=lambda trigger: kinds.index(trigger.kind)))


def _numbered(items: Iterable[Node], path: str) -> Places:
    return ((item, f"{path}[{number}]") for number, item in enumerate(items))


def _mappings(items: Places, reading: Reading) -> Iterator[Fields]:
    for item, path in items:
        if isinstance(item, MapNode):
            yield Fields(item, path, reading.problems)
        else:
            reading.problems.add(f"a trigger must be a mapping, found {kind_of(item)}", item.mark, path)
