"""Signals: something has happened. Each has a name and a few values; steps wait for them, and they begin runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dalsegno.model.workflow import Operator

#: What a parameter of a signal may be.
SignalValue = str | int


@dataclass(frozen=True)
class Signal:
    """One that was announced."""

    #: Of two signals of one name, the later one has the higher number.
    id: int
    name: str
    params: Mapping[str, SignalValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Announcement:
    """A signal before anybody has heard of it."""

    name: str
    params: Mapping[str, SignalValue] = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict)
    #: The same name with the same key is the same signal; without a key it is a new one.
    key: str | None = None
    #: Who announces it, and of a step: which one.
    source: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    """What a parameter of a signal must be, as a value."""

    operator: Operator
    value: SignalValue


@dataclass(frozen=True)
class Wanted:
    """Which signals will do."""

    name: str
    match: Mapping[str, Match] = field(default_factory=dict)


@dataclass(frozen=True)
class WantedSignal:
    """What a step waits for, as far as somebody has looked for it."""

    wanted: Wanted
    #: The newest signal that will do, and the last one that was looked at.
    found: int | None = None
    seen: int = 0
