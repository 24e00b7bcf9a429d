"""Signals: what steps wait for and announce, and what begins a run."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.workflow import Operator, SignalDependency, SignalMatch, SignalOutput, SignalTrigger
from dalsegno.spec import names
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.params import read_either, typed

SIGNALS_OF_A_TRIGGER = 8
_MATCHABLE = (ParamType.STRING, ParamType.LONG)
_MATCH = ("match_params", "match")
_EMPTY = ParamDefinition(ParamType.STRING, "")


def read_dependencies(fields: Fields, reading: Reading) -> tuple[SignalDependency, ...]:
    found = []
    for inner in _named(fields, "signal_dependencies"):
        found.append(SignalDependency(inner.text("name") or "", _matches(inner, reading)))
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


def read_signal_trigger(fields: Fields, reading: Reading) -> SignalTrigger:
    """``definitions`` as in JSON; YAML may also say ``signals``, or ``signal`` for a single one."""
    entries = _entries(fields, reading)
    if not entries:
        fields.add("a signal trigger needs at least one signal")
    if len(entries) > SIGNALS_OF_A_TRIGGER:
        fields.add(f"a trigger has {len(entries)} signals; {SIGNALS_OF_A_TRIGGER} are the limit")
    definitions: dict[str, SignalDependency] = {}
    join_keys: dict[str, tuple[str, ...]] = {}
    for name, inner in entries.items():
        matches = _matches(inner, reading) if inner else {}
        keys = tuple(text for text, _ in inner.texts("join_keys")) if inner else ()
        definitions[name] = SignalDependency(name, matches)
        if keys:
            join_keys[name] = keys
        if inner:
            inner.refuse_rest("a signal of a trigger")
            for key in set(keys) & set(matches):
                inner.add(f"{key!r} is both matched and joined: give one", "join_keys")
    if len({len(join_keys.get(name, ())) for name in definitions}) > 1:
        fields.add("all signals of a trigger need as many join_keys")
    params = read_either(fields.mapping("params"), reading)
    condition, dedup = _expression(fields, "condition", reading), _expression(fields, "dedup_expr", reading)
    fields.refuse_rest("a signal trigger")
    return SignalTrigger(definitions, join_keys, params, condition, dedup)


def _entries(fields: Fields, reading: Reading) -> dict[str, Fields | None]:
    """The signals' own fields by their names."""
    single = fields.find("signal")
    several = fields.find("definitions", "signals")
    found: dict[str, Fields | None] = {}
    if isinstance(single, Scalar):
        found[single.text] = None
    elif isinstance(single, MapNode):
        inner = Fields(single, fields.place("signal"), reading.problems)
        found[inner.text("name") or ""] = inner
        if not inner.text("name"):
            inner.add("a signal needs a name")
    elif single is not None:
        fields.at(f"'signal' must be a name or a mapping, found {kind_of(single)}", single, "signal")
    if isinstance(several, MapNode):
        place = fields.place("definitions", "signals")
        for name, (key, node) in several.entries.items():
            is_map = isinstance(node, MapNode)
            found[name] = Fields(node, f"{place}.{name}", reading.problems) if isinstance(node, MapNode) else None
            if not is_map and not (isinstance(node, Scalar) and node.value is None):
                reading.problems.add(f"the signal {name!r} must be a mapping, found {kind_of(node)}", key.mark, place)
    elif isinstance(several, ListNode):
        found |= {text: None for text, _ in fields.texts("definitions", "signals")}
    elif several is not None:
        fields.at(f"signals must be a mapping or a list, found {kind_of(several)}", several, "signals")
    for name in found:
        _check_name(name, fields)
    return found


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
            _check_name(inner.text("name") or "", inner)
        found.append(inner)
    return found


def _check_name(name: str, fields: Fields) -> None:
    if name and (fault := names.fault_of_name(name)):
        fields.add(f"{name!r} cannot be a signal: {fault}")


def _matches(fields: Fields, reading: Reading) -> Mapping[str, SignalMatch]:
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


def _expression(fields: Fields, name: str, reading: Reading) -> str | None:
    node = fields.find(name)
    if isinstance(node, Scalar):
        return reading.expression(node.text, node, fields.place(name))
    return fields.text(name)
