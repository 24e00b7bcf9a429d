"""Time triggers as they are written."""

from __future__ import annotations

from typing import Any, ClassVar

from dalsegno.spec.canonical import given
from dalsegno.spec.durations import duration
from dalsegno.spec.fields import Fields, chosen
from dalsegno.spec.nodes import MapNode
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.triggers.spec import TriggerLanguage, known_fields, needed_fields
from dalsegno.triggers.time_triggers.model import CatchUp, CatchUpRule, TimeTrigger
from dalsegno.triggers.time_triggers.spec import cron
from dalsegno.triggers.time_triggers.spec.schedules import zone_hint, zone_of

_TYPES = ("CRON", "PREDEFINED")
#: How many missed due times are made up for, if nothing else is said, and at most.
CAUGHT_UP = 100
MOST_CAUGHT_UP = 1000


class TimeLanguage(TriggerLanguage[TimeTrigger]):
    fields: ClassVar[tuple[str, ...]] = ("cron", "expression")

    def read(self, fields: Fields, reading: Reading) -> TimeTrigger:
        kind = (fields.text("type") or "CRON").upper()
        if kind not in _TYPES:
            fields.add(f"there is no time trigger of type {kind!r}", "type", f"expected one of {', '.join(_TYPES)}")
        trigger = TimeTrigger(_line(fields), _timezone(fields), _delay(fields), _catch_up(fields))
        fields.refuse_rest("a time trigger")
        return trigger

    def write(self, trigger: TimeTrigger) -> dict[str, Any]:
        is_alias = trigger.cron.startswith("@")
        line = (
            {"type": "PREDEFINED", "expression": trigger.cron} if is_alias else {"type": "CRON", "cron": trigger.cron}
        )
        caught_up = {"rule": trigger.catch_up.rule, "most": trigger.catch_up.most}
        return {
            **line,
            **given(
                timezone=trigger.timezone,
                fuzzy_max_delay=trigger.fuzzy_max_delay,
                catch_up=None if trigger.catch_up == CatchUp() else caught_up,
            ),
        }

    def from_argument(self, text: str) -> TimeTrigger | None:
        """A cron line in quotes, or an alias."""
        return TimeTrigger(text) if text.startswith("@") or len(text.split()) > 1 else None


def _line(fields: Fields) -> str:
    line = fields.text("cron", "expression")
    if line is None:
        if not any(meant(key, known_fields()) for key in fields.node.entries):
            fields.add(f"a trigger needs {needed_fields()}")
        line = "@daily"
    line = line.strip()
    if f"@{line.lower()}" in cron.ALIASES:
        line = f"@{line}"
    if line.startswith("@"):
        line = line.lower()
    if fault := cron.fault_of(line):
        name = fields.written("cron", "expression")
        fields.at(f"{line!r} is not a schedule: {fault}", fields.find("cron", "expression") or fields.node, name)
    return line


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
        fields.add(f"{text!r} is not a duration", "fuzzy_max_delay", "write for instance 30s or 5min")
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
