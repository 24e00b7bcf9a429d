"""Whom a workflow wants to tell what: our words in ``alerting``, beside Maestro's, which are kept as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dalsegno.model.alerting import Alerting
from dalsegno.spec.durations import duration
from dalsegno.spec.fields import Fields
from dalsegno.spec.nodes import SourceLocation, plain
from dalsegno.spec.problems import meant

Marks = dict[tuple[str, ...], SourceLocation]
#: Of the places of channels.
CHANNEL = "channel"
#: Each with how long may pass, if it is about time.
_CHANNELS = {"on_failure": None, "on_late": "complete_within", "on_lag": "max_lag"}
_CHANNEL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST = timedelta(days=120)


def read_alerting(fields: Fields, marks: Marks) -> dict[str, Any]:
    """What was written, checked as far as it is ours; ``marks`` gets the place of each channel."""
    inner = fields.mapping("alerting")
    if inner is None:
        return {}
    for name, limit in _CHANNELS.items():
        _check_channels(inner, name, marks)
        if limit is not None:
            _check_limit(inner, limit)
            _check_both(inner, name, limit)
    for key, _ in inner.rest():
        if hint := meant(key.text, [*_CHANNELS, *filter(None, _CHANNELS.values())], cutoff=0.8):
            message = f"{key.text!r} is kept, but means nothing to dalsegno"
            inner.problems.add(message, key.mark, f"{inner.path}.{key.text}", hint, warning=True)
    found: dict[str, Any] = plain(inner.node)
    return found


def _check_channels(fields: Fields, name: str, marks: Marks) -> None:
    for text, mark in fields.texts(name):
        marks.setdefault((CHANNEL, text), mark)
        if not _CHANNEL.fullmatch(text):
            fields.problems.add(
                f"{text!r} cannot be the name of a channel",
                mark,
                fields.place(name),
                "write the NAME of a [notifications.NAME] in dalsegno.toml",
            )


def _check_limit(fields: Fields, name: str) -> None:
    text = fields.text(name)
    if text is None:
        return
    length = duration(text)
    if length is None:
        fields.add(f"{text!r} is not a duration", name, "write for instance 30min, 2h or 1 day")
    elif not timedelta() < length <= _LONGEST:
        fields.add(f"{name!r} must be above 0 and at most {_LONGEST.days} days, found {text!r}", name)


def _check_both(fields: Fields, name: str, limit: str) -> None:
    has_limit, has_channels = fields.find(limit) is not None, fields.find(name) is not None
    if has_channels and not has_limit:
        fields.add(f"{name!r} needs {limit!r}", name, f"write for instance {limit}: 2h")
    if has_limit and not has_channels and fields.find("on_failure") is None:
        fields.add(f"{limit!r} does not name a channel", limit, f"write for instance {name}: [ops]")


def alerting_of(properties: Mapping[str, Any]) -> Alerting:
    """From a workflow's properties as the store keeps them; those who are told of failures are told of the rest."""
    found = properties.get("alerting") or {}
    if properties.get("alerting_disabled") or not isinstance(found, Mapping):
        return Alerting()
    on_failure = _names(found.get("on_failure"))
    return Alerting(
        on_failure,
        _names(found.get("on_late")) or on_failure,
        duration(str(found.get("complete_within", ""))),
        _names(found.get("on_lag")) or on_failure,
        duration(str(found.get("max_lag", ""))),
    )


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
