"""What libraries print, warn of or raise in threads, as records of the log."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TextIO

_log = logging.getLogger("dalsegno.uncaught")
_STREAMS = (1, 2)
#: What was printed last is still read, unless a process that was started here keeps the pipe open.
_PATIENCE_SECONDS = 2.0


@contextmanager
def uncaught_logged() -> Iterator[None]:
    """Log warnings, and exceptions that nobody catches in threads and finalizers."""

    def in_thread(raised: threading.ExceptHookArgs) -> None:
        if raised.exc_value is not None and not isinstance(raised.exc_value, SystemExit):
            name = raised.thread.name if raised.thread else "?"
            trace = (raised.exc_type, raised.exc_value, raised.exc_traceback)
            _log.error("thread %s ended by an exception: %s", name, raised.exc_value, exc_info=trace)

    def at_top(kind: type[BaseException], error: BaseException, trace: object) -> None:
        _log.critical("the process ended by an exception: %s", error, exc_info=error)

    def unraisable(raised: sys.UnraisableHookArgs) -> None:
        _log.error("%s: %r", raised.err_msg or "exception ignored", raised.object, exc_info=raised.exc_value)

    before = threading.excepthook, sys.excepthook, sys.unraisablehook, warnings.showwarning
    threading.excepthook, sys.excepthook, sys.unraisablehook = in_thread, at_top, unraisable
    logging.captureWarnings(capture=True)
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        threading.excepthook, sys.excepthook, sys.unraisablehook, warnings.showwarning = before


@contextmanager
def printed_logged() -> Iterator[TextIO]:
    """Log each line that anything in this process prints, native code included; yields where the log itself goes.

    The file descriptors themselves lead to the log: gRPC, for one, does not ask Python where to print.
    """
    if not _is_own(sys.stderr):
        yield sys.stderr
        return
    _flush()
    kept = {number: os.dup(number) for number in _STREAMS}
    reading, writing = os.pipe()
    for number in _STREAMS:
        os.dup2(writing, number)
    os.close(writing)
    reader = threading.Thread(target=_log_lines, args=(os.fdopen(reading, errors="backslashreplace"),), daemon=True)
    # Its end is nobody else's to close, and jobs do not inherit it.
    with os.fdopen(os.dup(kept[2]), "w", encoding="utf-8", errors="backslashreplace") as stream:
        reader.start()
        try:
            yield stream
        finally:
            _flush()
            for number, original in kept.items():
                os.dup2(original, number)
                os.close(original)
            reader.join(_PATIENCE_SECONDS)


def _is_own(stream: TextIO) -> bool:
    """Whether it is the process's own; a test, or whoever calls us, may have put another in its place."""
    try:
        return stream.fileno() == _STREAMS[-1]
    except (OSError, io.UnsupportedOperation):
        return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _log_lines(pipe: IO[str]) -> None:
    printed = logging.getLogger("printed")
    with pipe:
        for line in pipe:
            # If nobody read the pipe, whoever prints would wait for ever.
            with suppress(Exception):
                if line.strip():
                    printed.warning("%s", line.rstrip())
