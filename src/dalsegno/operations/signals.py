"""The verbs of signals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dalsegno.errors import Conflict, ParamError, UserError
from dalsegno.model.params import ParamType
from dalsegno.model.signals import Announcement, SignalValue
from dalsegno.model.stored_text import fault_of_value
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, number_of, page_of
from dalsegno.spec.names import fault_of_key, fault_of_name, fault_of_param_name
from dalsegno.spec.params.values import cast, type_of
from dalsegno.store import signals
from dalsegno.store.row_queries import Row

#: As YAML would take it for a number, and Maestro for a LONG.
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LONG = range(-(1 << 63), 1 << 63)
_TYPES = (ParamType.STRING, ParamType.LONG)


@dataclass(frozen=True)
class SignalView:
    """A signal that was announced."""

    id: int
    name: str
    params: Mapping[str, SignalValue]
    payload: Mapping[str, Any]
    key: str | None
    #: Who announced it; of a step's: which one.
    source: Mapping[str, Any]
    announced_at: datetime
    #: Whether it had been announced before, with the same key.
    is_repeated: bool = False


class Signals:
    def __init__(self, context: Context) -> None:
        self._context = context

    def announce(self, name: str, params: Mapping[str, Any] | None = None, *, key: str | None = None) -> SignalView:
        """Say that something has happened. Saying it again with the same key is the same signal."""
        with self._context.changing("signals.announce") as change:
            if fault := fault_of_name(name):
                raise UserError(f"{name!r} cannot be a signal: {fault}.")
            if key is not None and (fault := fault_of_key(key)):
                raise UserError(f"The key {key[:80]!r} cannot be used: {fault}.")
            given = {param: _checked(param, value) for param, value in (params or {}).items()}
            news = Announcement(name, given, key=key, source={"by": self._context.caller.name})
            with self._context.store.database.writing() as connection:
                [(row, is_repeated)] = signals.announce(connection, [news], self._context.clock())
                if not is_repeated:
                    change.describe("signal", name, after={"id": row["id"], "params": given, "key": key})
            if row["params"] != given:
                raise Conflict(
                    f"The key {key!r} was used for a signal {name!r} with other parameters.",
                    hint="Use another key for another signal.",
                )
            # Steps may have waited for it.
            self._context.machinery.deliver()
        return _view(row, is_repeated=is_repeated)

    def list(self, name: str | None = None, *, limit: int = 20, cursor: str | None = None) -> Page[SignalView]:
        """Newest first."""
        below = number_of(cursor, "signals")
        with self._context.store.database.reading() as connection:
            found = [_view(row) for row in signals.signal_rows(connection, name, limit=limit + 1, below=below)]
        return page_of(found, limit, "signals", lambda signal: signal.id)


def typed_value(name: str, text: str) -> tuple[str, SignalValue]:
    """What was typed as ``name=text``: a whole number is a LONG, unless the name says ``name:STRING``."""
    name, colon, kind = name.partition(":")
    if not colon:
        return name, int(text) if _NUMBER.fullmatch(text) and int(text) in _LONG else text
    if kind.upper() not in _TYPES:
        raise UserError(
            f"{kind!r} is not a type of a signal's parameter: expected STRING or LONG.", hint=f"Such as {name}:STRING=1"
        )
    return name, _cast(name, text, ParamType(kind.upper()))


def _checked(name: str, value: Any) -> SignalValue:
    if fault := fault_of_param_name(name):
        raise ParamError(f"{name!r} cannot be the name of a parameter: {fault}.")
    if fault := fault_of_value(value):
        raise ParamError(f"The parameter {name!r} of a signal cannot be set: it holds {fault}.")
    kind = type_of(value)
    if kind not in _TYPES:
        raise ParamError(f"The parameter {name!r} of a signal must be a STRING or a LONG, found {kind}.")
    return _cast(name, value, kind)


def _cast(name: str, value: Any, kind: ParamType) -> SignalValue:
    try:
        found = cast(value, kind)
    except ParamError as error:
        raise ParamError(f"The parameter {name!r} is a {kind}: {error.message}", hint=error.hint) from None
    return found if isinstance(found, int) else str(found)


def _view(row: Row, *, is_repeated: bool = False) -> SignalView:
    names = ("id", "name", "params", "payload", "key", "source", "announced_at")
    return SignalView(**{name: row[name] for name in names}, is_repeated=is_repeated)
