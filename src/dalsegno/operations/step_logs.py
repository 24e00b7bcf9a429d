"""What a step has written, as a stream: where it is kept is nobody else's matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class StepLog:
    """The output of one attempt of a step, in chunks of bytes; each attempt has a log of its own."""

    #: Where the log is; None: the step has not been reached, but it may be. The argument: whether more may come.
    find: Callable[[bool], Path | None]
    #: Whether nothing more can come.
    is_over: Callable[[], bool]

    def __iter__(self) -> Iterator[bytes]:
        """Everything there is; of one that is followed, until nothing more can come."""
        file: Path | None = None
        position = 0
        while True:
            is_over = self.is_over()
            newest = self.find(not is_over)
            if newest != file:
                # The step is tried again.
                file, position = newest, 0
            if file is not None and file.exists():
                with file.open("rb") as log:
                    log.seek(position)
                    while chunk := log.read(_CHUNK):
                        yield chunk
                    position = log.tell()
            if is_over:
                return
            time.sleep(_LOOK_SECONDS)

    def text(self) -> str:
        return b"".join(self).decode("utf-8", "backslashreplace")
