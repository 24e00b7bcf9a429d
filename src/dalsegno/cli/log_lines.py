"""How a service writes its log: one line per record, for people or for machines, and no secret in it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dalsegno.engine.about import about
from dalsegno.operations.printable import escaped
from dalsegno.steps.secret_values import secret_values

if TYPE_CHECKING:
    from dalsegno.settings import Settings

#: What a record may be about.
_FIELDS = ("run", "step", "attempt")
#: What they say of their everyday life is nobody's concern.
_QUIET = ("uvicorn", "pyiceberg")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def set_up(settings: Settings, wanted: LogFormat | None) -> None:
    """Log to standard error; as text on a terminal, as JSON elsewhere, unless told otherwise."""
    chosen = wanted or (LogFormat.TEXT if sys.stderr.isatty() else LogFormat.JSON)
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines(secret_values(settings)) if chosen is LogFormat.JSON else TextLines(secret_values(settings))
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _Lines(logging.Formatter):
    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = sorted(set(secrets), key=len, reverse=True)

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def message(self, record: logging.LogRecord) -> str:
        return self.masked(record.getMessage())

    def trace(self, record: logging.LogRecord) -> str | None:
        return self.masked(self.formatException(record.exc_info)) if record.exc_info else None


class JsonLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.message(record),
            **_about(record),
        }
        if (trace := self.trace(record)) is not None:
            found["exception"] = trace
        # JSON leaves some control characters as they are.
        return escaped(json.dumps(found, ensure_ascii=False, default=str))


class TextLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        # What a job or a table is called may hold anything; a record is one line.
        message = " ".join(self.message(record).splitlines())
        fields = "".join(f" {name}={value}" for name, value in _about(record).items())
        trace = self.trace(record)
        line = f"{_time(record)} {record.levelname} {record.name}: {message}{fields}"
        return escaped(f"{line}\n{trace}" if trace else line)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _about(record: logging.LogRecord) -> dict[str, Any]:
    known = {**about(), **{name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}}
    return {name: known[name] for name in _FIELDS if known.get(name) is not None}
