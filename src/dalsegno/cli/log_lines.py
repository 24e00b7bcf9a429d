"""How a service writes its log: one line per record, for people or for machines, and no secret in it."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

from dalsegno.cli.log_capture import printed_logged, uncaught_logged
from dalsegno.cli.output import exit_code
from dalsegno.engine.log_context import about
from dalsegno.errors import DalsegnoError
from dalsegno.operations.printable import escaped
from dalsegno.steps.secret_values import secret_values

if TYPE_CHECKING:
    from dalsegno.settings import Settings

log = logging.getLogger(__name__)

#: What a record may be about.
_FIELDS = ("run", "step", "attempt")
#: What they say of their everyday life is nobody's concern.
_QUIET = ("uvicorn", "pyiceberg")


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@contextmanager
def logged(settings: Settings, wanted: LogFormat | None) -> Iterator[LogFormat]:
    """Log to standard error; as text on a terminal, as JSON elsewhere, unless told otherwise.

    As JSON, every line is a record, whoever wrote it: what libraries print, and the error that ends the process.
    """
    chosen = wanted or (LogFormat.TEXT if sys.stderr.isatty() else LogFormat.JSON)
    secrets = secret_values(settings)
    is_json = chosen is LogFormat.JSON
    with printed_logged() if is_json else nullcontext(sys.stderr) as stream, uncaught_logged():
        handler = _Handler(stream)
        handler.setFormatter(JsonLines(secrets) if is_json else TextLines(secrets))
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.WARNING)
        try:
            yield chosen
        except DalsegnoError as error:
            if not is_json:
                raise
            log.critical("%s: %s", error.code, " → ".join(filter(None, (error.message, error.hint))))
            raise SystemExit(exit_code(error)) from None
        except Exception as error:
            if not is_json:
                raise
            log.critical("the server ended by an exception: %s", error, exc_info=True)
            raise SystemExit(1) from None


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:
        """Nobody reads the log any more: to print that would lead to the next record, and so on."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


def is_json() -> bool:
    """Whether this process logs as JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


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
