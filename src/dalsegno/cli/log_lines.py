"""How a service writes its log: one line per record, for people or for machines, and no secret in it."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dalsegno.engine.about import about
from dalsegno.operations.printable import escaped

if TYPE_CHECKING:
    from dalsegno.settings import Settings

#: What a record may be about.
_FIELDS = ("run", "step", "attempt")
#: Shorter ones are no secrets, and would be found in every other word.
_SHORTEST_SECRET = 6
#: What they say of their everyday life is nobody's concern.
_QUIET = ("uvicorn", "pyiceberg")
_SECRET_NAME = re.compile(r"secret|password|token|credential|key", re.IGNORECASE)


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def set_up(settings: Settings, wanted: LogFormat | None) -> None:
    """Log to standard error; as text on a terminal, as JSON elsewhere, unless told otherwise."""
    chosen = wanted or (LogFormat.TEXT if sys.stderr.isatty() else LogFormat.JSON)
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines(secrets_of(settings)) if chosen is LogFormat.JSON else TextLines(secrets_of(settings))
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


def secrets_of(settings: Settings) -> list[str]:
    """Every value of the settings and of the environment that must not be shown."""
    found: list[str | None] = [*settings.secrets.values()]
    found += [value for name, value in os.environ.items() if name.startswith("DALSEGNO_SECRET_")]
    for channel in settings.notifications.values():
        found += [channel.url, channel.password, *channel.headers.values()]
    for catalog in settings.catalogs.values():
        for properties in (catalog.properties, catalog.pyiceberg, catalog.spark):
            found += [value for name, value in properties.items() if _SECRET_NAME.search(name)]
    urls = [settings.store, *(each.url for each in settings.connections.values())]
    urls += [each.uri for each in settings.catalogs.values() if each.uri]
    found += [match[1] for url in urls if (match := re.search(r"://[^/@]*:([^/@]+)@", url))]
    return [secret for secret in found if secret and len(secret) >= _SHORTEST_SECRET]
