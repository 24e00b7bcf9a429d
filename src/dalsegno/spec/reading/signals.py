"""Signals that steps wait for and announce."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.workflow import Operator, SignalDependency, SignalMatch, SignalOutput
from dalsegno.spec import names
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import MapNode, Node, Scalar
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.params import read_either, typed

_MATCHABLE = (ParamType.STRING, ParamType.LONG)
_MATCH = ("match_params", "match")
_EMPTY = ParamDefinition(ParamType.STRING, "")


def read_dependencies(fields: Fields, reading: Reading) -> tuple[SignalDependency, ...]:
    found = []
    for inner in _named(fields, "signal_dependencies"):
        found.append(SignalDependency(inner.text("name") or "", read_matches(inner, reading)))
        inner.refuse_rest("a signal dependency")
    return tuple(found)


def read_outputs(fields: Fields, reading: Reading) -> tuple[SignalOutput, ...]:
    found = []
    for inner in _named(fields, "signal_outputs"):
        params = read_either(inner.mapping("params"), reading)
        for name, param in params.items():
            _refuse_type(name, param, inner)
        found.append(SignalOutput(inner.text("name") or "", params, inner.data("payload")))
        inner.refuse_rest("a signal output")
    return tuple(found)


def _named(fields: Fields, name: str) -> list[Fields]:
    """The items of a list, each with a name; a text is a name alone."""
    found = []
    for number, item in enumerate(fields.items(name)):
        path = f"{fields.place(name)}[{number}]"
        node = item
        if isinstance(item, Scalar) and item.value is not None:
            key = Scalar("name", item.mark, "name")
            node = MapNode(item.mark, {"name": (key, item)})
        if not isinstance(node, MapNode):
            fields.at(f"{name!r} must hold mappings with a name, found {kind_of(item)}", item, name)
            continue
        inner = Fields(node, path, fields.problems)
        if not inner.text("name"):
            inner.add("a signal needs a name")
        else:
            check_name(inner.text("name") or "", inner)
        found.append(inner)
    return found


def check_name(name: str, fields: Fields) -> None:
    if name and (fault := names.fault_of_name(name)):
        fields.add(f"{name!r} cannot be a signal: {fault}")


def read_matches(fields: Fields, reading: Reading) -> Mapping[str, SignalMatch]:
    inner = fields.mapping(*_MATCH)
    if inner is None:
        return {}
    found = dict(_match(key, node, inner, reading) for key, node in inner.node.entries.values())
    ranges = [name for name, match in found.items() if match.operator is not Operator.EQUAL]
    if len(ranges) > 1:
        inner.add(f"only one parameter may be matched by a range; found {', '.join(map(repr, ranges))}")
    return found


def _match(key: Scalar, node: Node, fields: Fields, reading: Reading) -> tuple[str, SignalMatch]:
    name, path, operator = key.text, f"{fields.path}.{key.text}", Operator.EQUAL
    if isinstance(node, MapNode):
        inner = Fields(node, path, reading.problems)
        operator = inner.choice(Operator, "operator") or operator
        wrapped = inner.find("param")
        rest = {each: entry for each, entry in node.entries.items() if each != "operator"}
        param = typed(name, wrapped or MapNode(node.mark, rest), reading, path)
    else:
        alone = Fields(MapNode(fields.mark, {name: (key, node)}), fields.path, reading.problems)
        name, param = next(iter(read_either(alone, reading).items()), (name, _EMPTY))
    _refuse_type(name, param, fields)
    return name, SignalMatch(param, operator)


def _refuse_type(name: str, param: ParamDefinition, fields: Fields) -> None:
    if param.type not in _MATCHABLE:
        fields.add(f"a signal's {name!r} must be a STRING or a LONG, found {param.type}", name)
