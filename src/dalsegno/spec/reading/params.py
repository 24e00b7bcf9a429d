"""Definitions of parameters, in both forms: YAML's keys, and JSON's objects.

In YAML the key says it all: ``name``, ``!name`` for an expression, ``name<type>``, ``name<type>(mode)``. In JSON a
parameter is an object with ``value`` or ``expression``, ``type``, ``mode`` and more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dalsegno.model.params import InternalMode, ParamDefinition, ParamMode, ParamSource, ParamType
from dalsegno.spec import names
from dalsegno.spec.fields import Fields, chosen, is_null, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, plain
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.tags import read_tags
from dalsegno.spec.reading.values import array_type, literal, scalar_type

Definitions = dict[str, ParamDefinition]

_KEY = re.compile(r"\s*(?P<expression>!)?\s*(?P<name>[^<(]*?)\s*(?:<(?P<type>.+)>)?\s*(?:\((?P<mode>[^()]*)\))?\s*")
#: How many names lead to a field whose place is remembered, the step's id and the block included.
MARKED_DEPTH = 4
_SECRET = "secret"  # noqa: S105 - the key, not a secret
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_SHORT_TYPES = {"MAP": ParamType.STRING_MAP, "PMAP": ParamType.MAP}
_TYPED = frozenset({"value", "expression", "type", _SECRET})
#: What may have no value yet: templates say so.
_MAY_BE_OPEN = frozenset({InternalMode.OPTIONAL, InternalMode.REQUIRED, InternalMode.PROVIDED})


# YAML.


def read_written(
    entries: Iterable[tuple[Scalar, Node]],
    reading: Reading,
    path: str,
    *,
    owner: str | None = None,
    blocks: frozenset[str] = frozenset(),
) -> Definitions:
    """Parameters by their YAML keys.

    ``owner`` is the step's id, or empty for the workflow's own; without one they are entries of a map, which may have
    any name. What is called like one of the ``blocks`` becomes a MAP, even if it holds texts alone.
    """
    found: Definitions = {}
    for key, node in entries:
        definition = _written(key, node, reading, path, blocks, is_nested=owner is None)
        if definition is None:
            continue
        name, value = definition
        if name in found:
            reading.problems.add(f"the parameter {name!r} is given twice", key.mark, f"{path}.{name}")
        if owner is not None:
            check_name(name, key, reading, path)
            reading.marks[("param", owner, name)] = key.mark
            mark_fields(owner, name, node, reading)
        found[name] = value
    return found


def mark_fields(owner: str, block: str, node: Node, reading: Reading) -> None:
    """Remember where each field of a block stands; in JSON, both may be wrapped as ``{"value": …}``."""
    _mark_inside((owner, block), node, reading)


def _mark_inside(path: tuple[str, ...], node: Node, reading: Reading) -> None:
    inside = _unwrapped(node)
    if not isinstance(inside, MapNode) or len(path) > MARKED_DEPTH:
        return
    for key, field in inside.entries.values():
        inner = (*path, name_in(key))
        reading.marks[("key", *inner)] = key.mark
        reading.marks[("field", *inner)] = _unwrapped(field).mark
        _mark_inside(inner, field, reading)


def _unwrapped(node: Node) -> Node:
    return node.entries["value"][1] if isinstance(node, MapNode) and "value" in node.entries else node


def name_in(key: Scalar) -> str:
    """The name that a YAML key gives to a parameter, without its type and mode."""
    parsed = _KEY.fullmatch(key.text)
    return parsed["name"] if parsed else key.text


def _written(
    key: Scalar, node: Node, reading: Reading, path: str, blocks: frozenset[str], *, is_nested: bool
) -> tuple[str, ParamDefinition] | None:
    parsed = _KEY.fullmatch(key.text)
    if parsed is None or not parsed["name"]:
        if is_nested and key.text:
            return key.text, infer(key.text, node, reading, f"{path}.{key.text}")
        reading.problems.add(f"{key.text!r} is not a valid name of a parameter", key.mark, path)
        return None
    name = parsed["name"]
    inner = f"{path}.{name}"
    mode = _mode(parsed["mode"], key, inner, reading)
    kind = _type(parsed["type"], key, inner, reading) if parsed["type"] else None
    if parsed["expression"]:
        return name, ParamDefinition(
            kind or ParamType.STRING, expression=_expression(node, name, inner, reading), mode=mode
        )
    if kind is None and name in blocks and isinstance(node, MapNode) and not _is_secret(node):
        kind = ParamType.MAP
    return name, infer(name, node, reading, inner, kind, mode)


def infer(
    name: str,
    node: Node,
    reading: Reading,
    path: str,
    kind: ParamType | None = None,
    mode: ParamMode | None = None,
) -> ParamDefinition:
    """A parameter by its value; the type follows from it unless it is given."""
    if kind in (None, ParamType.STRING) and _is_secret(node):
        return ParamDefinition(ParamType.STRING, secret=str(plain(node)[_SECRET]), mode=mode)
    if is_null(node):
        reading.problems.add(f"{name!r} has no value", node.mark, path, "give it one, or leave it out")
        return ParamDefinition(kind or ParamType.STRING, value="", mode=mode)
    found = kind or _inferred(name, node, path, reading)
    if found is not ParamType.MAP:
        return ParamDefinition(found, literal(found, node, name, path, reading.problems), mode=mode)
    if not isinstance(node, MapNode):
        reading.problems.add(f"{name!r} is a MAP and needs a mapping, found {kind_of(node)}", node.mark, path)
        return ParamDefinition(found, {}, mode=mode)
    return ParamDefinition(found, read_written(node.entries.values(), reading, path), mode=mode)


def _inferred(name: str, node: Node, path: str, reading: Reading) -> ParamType:
    match node:
        case MapNode():
            are_texts = all(scalar_type(item) is ParamType.STRING for _, item in node.entries.values())
            are_plain = not any(key.startswith("!") or "<" in key for key in node.entries)
            return ParamType.STRING_MAP if node.entries and are_texts and are_plain else ParamType.MAP
        case ListNode():
            kind = array_type(node)
            if kind is None:
                hint = "write a list of texts, of numbers or of truth values"
                reading.problems.add(f"{name!r} mixes types in one list", node.mark, path, hint)
            return kind or ParamType.STRING_ARRAY
    return scalar_type(node) or ParamType.STRING


def _is_secret(node: Node) -> bool:
    return (
        isinstance(node, MapNode)
        and set(node.entries) == {_SECRET}
        and isinstance(found := node.entries[_SECRET][1], Scalar)
        and isinstance(found.value, str)
        and _SECRET_NAME.fullmatch(found.value) is not None
    )


def _mode(word: str | None, key: Scalar, path: str, reading: Reading) -> ParamMode | None:
    if word is None:
        return None
    return chosen(ParamMode, Scalar(word.strip(), key.mark, word.strip()), "mode", path, reading.problems)


def _type(word: str, key: Scalar, path: str, reading: Reading) -> ParamType | None:
    upper = word.strip().upper()
    array = re.fullmatch(r"ARRAY<\s*(\w+)\s*>", upper)
    upper = f"{array[1]}_ARRAY" if array else upper
    if upper in _SHORT_TYPES:
        return _SHORT_TYPES[upper]
    if upper in list(ParamType):
        return ParamType(upper)
    known = ["string", "long", "double", "boolean", "map", "pmap", *(f"array<{each}>" for each in ("string", "long"))]
    hint = meant(word, [*known, *ParamType]) or f"expected one of {', '.join(known)}, …"
    reading.problems.add(f"there is no type {word!r}", key.mark, path, hint)
    return None


def _expression(node: Node, name: str, path: str, reading: Reading) -> str:
    if not isinstance(node, Scalar) or node.value is None:
        reading.problems.add(f"the expression of {name!r} must be a text, found {kind_of(node)}", node.mark, path)
        return ""
    return reading.expression(node.text, node, path)


# JSON.


def read_either(fields: Fields | None, reading: Reading) -> Definitions:
    """Parameters whose keys may be YAML's, and whose values may be JSON's: no name of JSON looks like a key of YAML."""
    found: Definitions = {}
    if fields is None:
        return found
    for key, node in fields.node.entries.values():
        if key.text.startswith("!") or "<" in key.text:
            found |= read_written([(key, node)], reading, fields.path)
        else:
            found[key.text] = typed(key.text, node, reading, f"{fields.path}.{key.text}")
    return found


def read_typed(fields: Fields | None, reading: Reading, *, owner: str | None = None) -> Definitions:
    """Parameters as JSON writes them."""
    if fields is None:
        return {}
    found: Definitions = {}
    for name, (key, node) in fields.node.entries.items():
        if owner is not None:
            check_name(name, key, reading, fields.path)
            reading.marks[("param", owner, name)] = key.mark
            mark_fields(owner, name, node, reading)
        found[name] = typed(name, node, reading, f"{fields.path}.{name}")
    return found


def typed(name: str, node: Node, reading: Reading, path: str) -> ParamDefinition:
    """One parameter as JSON writes it; a bare value is taken with the type that it has."""
    if not isinstance(node, MapNode) or not _TYPED & set(node.entries):
        return infer(name, node, reading, path)
    fields = Fields(node, path, reading.problems)
    kind = fields.choice(ParamType, "type")
    internal = fields.choice(InternalMode, "internal_mode")
    expression, secret = fields.find("expression"), fields.text(_SECRET)
    fields.find("value")
    # A null value is a value that is left out, but an empty text is one that is given.
    value = node.entries["value"][1] if "value" in node.entries and not is_null(node.entries["value"][1]) else None
    given = [each for each in (value, expression, secret) if each is not None]
    if len(given) != 1 and not (not given and internal in _MAY_BE_OPEN):
        found = "several" if given else "none"
        fields.add(f"{name!r} needs one of 'value', 'expression' and 'secret', found {found}")
    content: dict[str, Any] = {}
    if expression is not None:
        content["expression"] = _expression(expression, name, path, reading)
        kind = kind or ParamType.STRING
    elif secret is not None:
        content[_SECRET] = secret
        kind = kind or ParamType.STRING
    elif value is not None:
        kind = kind or _inferred(name, value, path, reading)
        content["value"] = _typed_value(kind, value, name, path, reading)
    return ParamDefinition(
        kind or ParamType.STRING,
        **content,
        mode=fields.choice(ParamMode, "mode"),
        internal_mode=internal,
        source=_source(fields, name, reading),
        tags=read_tags(fields, "tags"),
        validator=_validator(fields, reading),
        meta={key.text: plain(item) for key, item in fields.rest()},
    )


def _typed_value(kind: ParamType, node: Node, name: str, path: str, reading: Reading) -> Any:
    if kind is not ParamType.MAP:
        return literal(kind, node, name, path, reading.problems)
    if not isinstance(node, MapNode):
        reading.problems.add(f"{name!r} is a MAP and needs a mapping, found {kind_of(node)}", node.mark, path)
        return {}
    return read_typed(Fields(node, path, reading.problems), reading)


def _validator(fields: Fields, reading: Reading) -> str | None:
    """SEL, or a word such as ``@NotEmpty``."""
    node = fields.find("validator")
    if isinstance(node, Scalar) and not node.text.startswith("@"):
        reading.expression(node.text, node, fields.place("validator"))
    return fields.text("validator")


def _source(fields: Fields, name: str, reading: Reading) -> ParamSource:
    if not reading.trusted:
        if fields.find("source") is not None:
            fields.add(f"the source of {name!r} is set by the system: leave it out", "source")
        return ParamSource.DEFINITION
    return fields.choice(ParamSource, "source") or ParamSource.DEFINITION


def check_name(name: str, key: Scalar, reading: Reading, path: str) -> None:
    if fault := names.fault_of_param_name(name):
        reading.problems.add(f"{name!r} cannot be the name of a parameter: {fault}", key.mark, f"{path}.{name}")
