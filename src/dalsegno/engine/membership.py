"""One process's time among those who run steps: from joining them until it leaves, or is taken for dead."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dalsegno.plan.liveness import JOIN_AGAIN_SECONDS, LET_GO_SECONDS
from dalsegno.private_files import make_private_folder
from dalsegno.steps.supervisor import elapsing_clock

#: What an abandoned sign of life looks like to whoever cleans up.
_FORGOTTEN_SECONDS = 24 * 3600.0


class Membership:
    """It is over for good once no sign of life was confirmed for too long. Any number of threads may ask."""

    def __init__(self, node_id: str, began: float, stopwatch: Callable[[], float], sign_file: Path | None) -> None:
        self.id = node_id
        #: Renewed with every sign of life, for those who look after jobs that only this machine can find again.
        self.sign_file = sign_file
        self._stopwatch = stopwatch
        self._confirmed = began
        self._has_ended = False
        # A disk that is full now is shown the next sign of life; without one, no job of ours goes on for long.
        with suppress(OSError):
            self._show()

    @property
    def is_over(self) -> bool:
        if not self._has_ended and self._silent_seconds() >= LET_GO_SECONDS:
            self._has_ended = True
        return self._has_ended

    def end(self) -> None:
        self._has_ended = True

    def confirm(self, began: float) -> None:
        """The store has taken a sign of life that was given at this time."""
        if not self.is_over:
            self._confirmed = began
            self._show()

    def seconds_until_let_go(self) -> float:
        """How long to wait until nothing of what was begun in this time can still be going on unwatched."""
        return max(0.0, JOIN_AGAIN_SECONDS - self._silent_seconds())

    def _silent_seconds(self) -> float:
        return self._stopwatch() - self._confirmed

    def _show(self) -> None:
        """Put the time of the last sign of life where it is looked for; in place, which a full disk allows."""
        if self.sign_file is None:
            return
        shown = elapsing_clock() - self._silent_seconds()
        try:
            file = os.open(self.sign_file, os.O_WRONLY | os.O_CREAT, 0o600)
        except FileNotFoundError:
            make_private_folder(self.sign_file.parent)
            file = os.open(self.sign_file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, f"{shown:020.3f}".encode(), 0)
        finally:
            os.close(file)

    def remove_sign(self) -> None:
        if self.sign_file is not None:
            with suppress(OSError):
                self.sign_file.unlink(missing_ok=True)


def forget_old_signs(folder: Path) -> None:
    """Remove the signs of life that processes left behind long ago."""
    with suppress(OSError):
        for file in folder.iterdir():
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > _FORGOTTEN_SECONDS:
                    file.unlink()
