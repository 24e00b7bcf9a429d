"""Signal triggers as they are written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from dalsegno.model.params import ParamDefinition
from dalsegno.model.workflow import SignalDependency, SignalMatch
from dalsegno.spec.canonical import given, match, params
from dalsegno.spec.fields import Fields, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Scalar
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.params import read_either
from dalsegno.spec.reading.signals import check_name, read_matches
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.spec import TriggerLanguage

SIGNALS_OF_A_TRIGGER = 8


class SignalLanguage(TriggerLanguage[SignalTrigger]):
    fields: ClassVar[tuple[str, ...]] = ("signal", "signals", "definitions")

    def read(self, fields: Fields, reading: Reading) -> SignalTrigger:
        """``definitions`` as in JSON; YAML may also say ``signals``, or ``signal`` for a single one."""
        entries = _entries(fields, reading)
        if not entries:
            fields.add("a signal trigger needs at least one signal")
        if len(entries) > SIGNALS_OF_A_TRIGGER:
            fields.add(f"a trigger has {len(entries)} signals; {SIGNALS_OF_A_TRIGGER} are the limit")
        definitions: dict[str, SignalDependency] = {}
        join_keys: dict[str, tuple[str, ...]] = {}
        for name, inner in entries.items():
            matches = read_matches(inner, reading) if inner else {}
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

    def write(self, trigger: SignalTrigger) -> dict[str, Any]:
        definitions = {
            name: given(
                match_params={key: _trigger_match(each) for key, each in signal.match.items()},
                join_keys=list(trigger.join_keys.get(name, ())),
            )
            for name, signal in trigger.definitions.items()
        }
        return {
            "definitions": definitions,
            **given(params=params(trigger.params), condition=trigger.condition, dedup_expr=trigger.dedup_expr),
        }

    def params(self, trigger: SignalTrigger) -> Collection[str]:
        return trigger.definitions.keys()


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
        check_name(name, fields)
    return found


def _expression(fields: Fields, name: str, reading: Reading) -> str | None:
    node = fields.find(name)
    if isinstance(node, Scalar):
        return reading.expression(node.text, node, fields.place(name))
    return fields.text(name)


def _trigger_match(value: SignalMatch) -> dict[str, Any]:
    """A trigger has no parameters to refer to, so Maestro gives the bare value."""
    if value.param.value is None or value.param != ParamDefinition(value.param.type, value.param.value):
        return match(value)
    return {"value": value.param.value, "operator": value.operator}


LANGUAGE = SignalLanguage()
