"""When a run begins: cron lines, signals, and tables that changed."""

from __future__ import annotations

from typing import NamedTuple

from dalsegno.model.workflow import CatchUp, CatchUpRule, IncrementalTrigger, SignalTrigger, TimeTrigger
from dalsegno.spec import cron
from dalsegno.spec.durations import duration
from dalsegno.spec.fields import Fields, chosen, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Node
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.spec.reading.incremental import INCREMENTAL, read_incremental_trigger, read_watched_tables
from dalsegno.spec.reading.signals import read_signal_trigger
from dalsegno.spec.schedules import zone_hint, zone_of


class Triggers(NamedTuple):
    """What begins runs of a workflow."""

    times: tuple[TimeTrigger, ...] = ()
    signals: tuple[SignalTrigger, ...] = ()
    incremental: tuple[IncrementalTrigger, ...] = ()


NO_TRIGGERS = Triggers()
_TYPES = ("CRON", "PREDEFINED")
_SIGNALS = ("signal", "signals", "definitions")
#: How many missed due times are made up for, if nothing else is said, and at most.
CAUGHT_UP = 100
MOST_CAUGHT_UP = 1000


def read_triggers(fields: Fields, reading: Reading) -> Triggers:
    """``time_triggers``, ``signal_triggers`` and ``incremental_triggers``, as in JSON."""
    times = tuple(_time(each) for each in _mappings(fields, "time_triggers"))
    signals = tuple(read_signal_trigger(each, reading) for each in _mappings(fields, "signal_triggers"))
    incremental = tuple(read_watched_tables(each, reading) for each in _mappings(fields, "incremental_triggers"))
    return Triggers(times, signals, incremental)


def read_front_door(node: Node, path: str, reading: Reading) -> Triggers:
    """``Trigger:`` beside the workflow: one trigger, or a list of them."""
    times: list[TimeTrigger] = []
    signals: list[SignalTrigger] = []
    incremental: list[IncrementalTrigger] = []
    for number, item in enumerate(node.items if isinstance(node, ListNode) else [node]):
        place = f"{path}[{number}]" if isinstance(node, ListNode) else path
        if not isinstance(item, MapNode):
            reading.problems.add(f"a trigger must be a mapping, found {kind_of(item)}", item.mark, place)
            continue
        fields = Fields(item, place, reading.problems)
        if any(name in item.entries for name in _SIGNALS):
            signals.append(read_signal_trigger(fields, reading))
        elif INCREMENTAL in item.entries:
            incremental.append(read_incremental_trigger(fields, reading))
        else:
            times.append(_time(fields))
    return Triggers(tuple(times), tuple(signals), tuple(incremental))


def _mappings(fields: Fields, name: str) -> list[Fields]:
    found = []
    for number, item in enumerate(fields.items(name)):
        if isinstance(item, MapNode):
            found.append(Fields(item, f"{fields.place(name)}[{number}]", fields.problems))
        else:
            fields.at(f"a trigger must be a mapping, found {kind_of(item)}", item, name)
    return found


def _time(fields: Fields) -> TimeTrigger:
    kind = (fields.text("type") or "CRON").upper()
    if kind not in _TYPES:
        fields.add(f"there is no time trigger of type {kind!r}", "type", f"expected one of {', '.join(_TYPES)}")
    line = fields.text("cron", "expression")
    if line is None:
        if not any(meant(key, ("cron", INCREMENTAL, *_SIGNALS)) for key in fields.node.entries):
            fields.add("a trigger needs 'cron', 'signal' or 'incremental'")
        line = "@daily"
    line = line.strip()
    if f"@{line.lower()}" in cron.ALIASES:
        line = f"@{line}"
    if line.startswith("@"):
        line = line.lower()
    if fault := cron.fault_of(line):
        name = fields.written("cron", "expression")
        fields.at(f"{line!r} is no schedule: {fault}", fields.find("cron", "expression") or fields.node, name)
    trigger = TimeTrigger(line, _timezone(fields), _delay(fields), _catch_up(fields))
    fields.refuse_rest("a time trigger")
    return trigger


def _timezone(fields: Fields) -> str | None:
    name = fields.text("timezone")
    if name is None:
        return None
    if zone_of(name) is None:
        fields.add(f"there is no time zone {name!r}", "timezone", zone_hint(name))
    return name


def _delay(fields: Fields) -> str | None:
    """A bare number counts milliseconds here, because it does in Maestro."""
    text = fields.text("fuzzy_max_delay")
    if text is None:
        return None
    text = f"{text.strip()}ms" if text.strip().isdecimal() else text
    if duration(text) is None:
        fields.add(f"{text!r} is no duration", "fuzzy_max_delay", "write for instance 30s or 5min")
    return text


def _catch_up(fields: Fields) -> CatchUp:
    """A rule, or ``{rule: all, most: 10}``."""
    node = fields.find("catch_up")
    if node is None:
        return CatchUp()
    if not isinstance(node, MapNode):
        rule = chosen(CatchUpRule, node, "catch_up", fields.place("catch_up"), fields.problems)
        return CatchUp(CatchUpRule.ALL, CAUGHT_UP) if rule is CatchUpRule.ALL else CatchUp(rule or CatchUpRule.LATEST)
    inner = Fields(node, fields.place("catch_up"), fields.problems)
    rule = inner.choice(CatchUpRule, "rule")
    most = inner.number("most", low=1, high=MOST_CAUGHT_UP)
    if "rule" not in node.entries:
        inner.add("'catch_up' needs a rule", hint=f"expected one of {', '.join(CatchUpRule)}")
    inner.refuse_rest("'catch_up'")
    if rule is CatchUpRule.ALL:
        return CatchUp(rule, CAUGHT_UP if most is None else most)
    if rule is not None and most is not None and most > 1:
        inner.add(f"only ALL starts more than one run; {rule} does not", "most")
    return CatchUp(rule or CatchUpRule.LATEST)
