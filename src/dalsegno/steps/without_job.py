"""Steps that execute nothing: NoOp, which ends at once, and Sleep, which ends after a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from dalsegno.errors import UserError
from dalsegno.model.params import Value

#: As long as Maestro sleeps if nobody says how long, and a limit below which every date can be written.
_DEFAULT_SECONDS, _MOST_SECONDS = 3.0, 3650 * 86400.0


class NoOpRunner:
    name: ClassVar[str] = "NoOp"
    raw: ClassVar[frozenset[str]] = frozenset()

    def seconds_to_wait(self, params: Mapping[str, Value]) -> float | None:
        del params
        return None


class SleepRunner:
    name: ClassVar[str] = "Sleep"
    raw: ClassVar[frozenset[str]] = frozenset()

    def seconds_to_wait(self, params: Mapping[str, Value]) -> float | None:
        written = params.get("sleep_seconds", _DEFAULT_SECONDS)
        try:
            seconds = float(str(written))
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= _MOST_SECONDS:
            raise UserError(
                f"sleep_seconds is {written!r}, expected a number of seconds from 0 to {_MOST_SECONDS:.0f}.",
                hint="Such as: sleep_seconds: 30",
            )
        return seconds
