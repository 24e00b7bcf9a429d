"""Expressions on the command line: one, or one in each line of a file."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from dalsegno.errors import PlatformError, SelError, UserError
from dalsegno.sel import PARAMETER_TYPES, Type, Value, evaluate, value_of

_PARAMETER = re.compile(r"([^=:\s]+)(?::(\w+))?=(.*)", re.DOTALL)
_LONG = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False}


def evaluated(expression: str, parameters: list[str], now: datetime) -> Value:
    """The value of one expression, with parameters as they were typed: ``x=1`` or ``x:STRING=1``."""
    return evaluate(expression, dict(map(_typed, parameters)), now=now)


def answers(file: str, now: datetime) -> Iterator[dict[str, Any]]:
    """An answer to each line, whatever is in it: type and value, or what is wrong."""
    with _opened(file) as lines:
        for line in lines:
            yield _answer(line, now)


def shown(value: Value) -> dict[str, Any]:
    """What JSON can hold; numbers that it cannot hold are named."""
    return {"type": str(value.type), "value": _plain(value.value)}


def text(value: Value) -> str:
    """For people: strings as they are, everything else as JSON."""
    plain = _plain(value.value)
    return f"{value.type}: {plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)}"


def moment(written: str | None, now: datetime, *, option: str = "--now") -> datetime:
    """The time that the user named, UTC unless it says otherwise."""
    if written is None:
        return now
    try:
        named = datetime.fromisoformat(written)
    except ValueError:
        raise UserError(f"'{written}' is not a time.", hint=f"Write {option} 2026-01-31T12:00:00Z.") from None
    return named if named.tzinfo else named.replace(tzinfo=UTC)


def _plain(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
    return value


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with _readable(Path(file)) as opened:
        yield opened


def _readable(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise PlatformError(f"{file} cannot be read: {error.strerror}.", hint="Use - for standard input.") from None


def _answer(line: bytes, now: datetime) -> dict[str, Any]:
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": 'The line is not JSON. Write {"expression": "1 + x", "params": {"x": {"value": 1}}}.'}
    if not isinstance(asked, dict) or not isinstance(asked.get("expression"), str):
        return {"error": 'The line has no "expression" that is a string.'}
    params = asked.get("params") or {}
    if not isinstance(params, dict):
        return {"error": '"params" is not an object.'}
    try:
        return shown(evaluate(asked["expression"], {name: _given(item) for name, item in params.items()}, now=now))
    except UserError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": "The parameters are nested too deeply."}


def _given(item: Any) -> Value:
    """A parameter as Maestro writes it, ``{"type": "LONG", "value": 1}``; without a type, what its value looks like."""
    if not isinstance(item, dict) or "value" not in item:
        raise SelError(f"{item!r:.80} is not a parameter.", hint='Write {"type": "LONG", "value": 1}.')
    value = item["value"]
    type_ = _type(str(item["type"])) if item.get("type") else value_of(value).type
    if type_ is Type.MAP and isinstance(value, dict):
        value = {key: _given(inner) if _is_parameter(inner) else inner for key, inner in value.items()}
    return Value(type_, value)


def _is_parameter(item: Any) -> bool:
    return isinstance(item, dict) and "value" in item and str(item.get("type", "")).upper() in PARAMETER_TYPES


def _type(name: str) -> Type:
    if name.upper() not in PARAMETER_TYPES:
        raise UserError(
            f"There is no parameter type {name:.60}.", hint=f"Types are {', '.join(sorted(PARAMETER_TYPES))}."
        )
    return Type(name.upper())


def _typed(parameter: str) -> tuple[str, Value]:
    match = _PARAMETER.fullmatch(parameter)
    if match is None:
        raise UserError(f"'{parameter:.60}' is not a parameter.", hint="Write --param x=1 or --param x:STRING=1.")
    name, type_name, written = match.groups()
    if type_name is None:
        return name, _guessed(written)
    type_ = _type(type_name)
    if type_ is Type.STRING:
        return name, Value(type_, written)
    try:
        return name, _given({"type": type_, "value": json.loads(written)})
    except ValueError:
        raise UserError(
            f"{written:.60} is not a {type_}.", hint="Write arrays and maps as JSON: x:LONG_ARRAY=[1,2]."
        ) from None


def _guessed(written: str) -> Value:
    if written in _WORDS:
        return Value(Type.BOOLEAN, _WORDS[written])
    if _LONG.fullmatch(written) and -(2**63) <= int(written) < 2**63:
        return Value(Type.LONG, int(written))
    if _DOUBLE.fullmatch(written):
        return Value(Type.DOUBLE, float(written))
    return Value(Type.STRING, written)
