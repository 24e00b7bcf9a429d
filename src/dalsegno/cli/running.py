"""Showing a run while it goes on, and running it in this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from dalsegno.cli import run_text
from dalsegno.cli.tables import cut
from dalsegno.cli.terminal import control
from dalsegno.operations.printable import escaped

if TYPE_CHECKING:
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.run_views import RunView

#: How a process that ran a workflow ends, by how the run did.
EXIT_CODES = {"SUCCEEDED": 0, "FAILED": 10, "STOPPED": 11, "TIMED_OUT": 12}
#: How a process ends that left a run to others: what shells say of one that Ctrl-C ended.
LEFT = 130
_LOOK_SECONDS = 0.1
#: A run that begins at once is not said to wait.
_PATIENCE_SECONDS = 1.0


def tree_of(operations: Operations, run: RunView, file: str | None = None) -> str:
    """A run with its steps, and what to do next if it failed."""
    newest = operations.workflows.newest_version(run.workflow_id) if run.status.is_final else None
    return run_text.tree(run, operations.runs.steps(run.id), operations.clock(), newest=newest, file=file)


def run_here(
    operations: Operations, run: RunView, *, is_quiet: bool, after: int = 0, file: str | None = None
) -> RunView:
    """Run steps in this process until the run has ended, and show what happens after an event.

    The first Ctrl-C stops the run. The second does not wait for that: the next process that works on runs sees to it.
    """
    done = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            operations.runs.finish(run.id)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            failed.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, name="engine")
    thread.start()
    shown = Shown(operations, run.id, is_quiet=is_quiet, after=after, file=file)
    is_stopped = False
    with _interrupts(run.name) as interrupted:
        while not done.wait(_LOOK_SECONDS):
            if interrupted.is_set() and not is_stopped:
                is_stopped = True
                operations.runs.stop(run.id, reason="Ctrl-C")
                shown.say("Stopping the run; Ctrl-C once more does not wait for its end.")
            shown.update()
    thread.join()
    shown.finish()
    if failed:
        raise failed[0]
    return operations.runs.get(run.id)


@contextmanager
def _interrupts(run_name: str) -> Iterator[threading.Event]:
    """Whether Ctrl-C was pressed; the second time, the process ends as it is."""
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        if interrupted.is_set():
            # Threads may be waiting for jobs to end; and like any process, this one may end at any moment.
            os.write(2, f"{run_name} is left to the next process that works on runs: dalsegno work\n".encode())
            os._exit(LEFT)
        interrupted.set()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def watch(operations: Operations, reference: str, *, is_quiet: bool) -> RunView:
    """Show a run that another process runs, until it has ended."""
    run = operations.runs.get(reference)
    shown = Shown(operations, run.id, is_quiet=is_quiet)
    unattended_said = False
    while not operations.runs.get(run.id).status.is_final:
        shown.update()
        if not unattended_said and not operations.runs.is_attended():
            unattended_said = True
            shown.say(f"No process works on {run.name} now. To go on with it: dalsegno work")
        time.sleep(_LOOK_SECONDS)
    shown.finish()
    return operations.runs.get(run.id)


class Shown:
    """A live tree on a terminal; elsewhere a line for everything that happens."""

    def __init__(
        self, operations: Operations, run_id: str, *, is_quiet: bool, after: int = 0, file: str | None = None
    ) -> None:
        self.operations = operations
        self.run_id = run_id
        self.is_quiet = is_quiet
        self.file = file
        self.is_live = sys.stdout.isatty() and not is_quiet
        self._last_event = after
        self._began = time.monotonic()
        self._remarks: list[str] = []
        self._drawn: list[str] = []

    def update(self) -> None:
        self._say_what_it_waits_for()
        if self.is_live:
            self._draw(self._tree(), most=get_terminal_size().lines - 1)
        elif not self.is_quiet:
            while found := self.operations.runs.events(self.run_id, self._last_event):
                for event in found:
                    print(run_text.event(event), flush=True)
                self._last_event = found[-1].id

    def say(self, remark: str) -> None:
        """A sentence beside what is shown; under the tree, where there is one."""
        if self.is_live:
            self._remarks.append(remark)
        else:
            print(remark, file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self.is_live:
            self._draw(self._tree(), most=None)
        else:
            self.update()

    def _say_what_it_waits_for(self) -> None:
        if self._began and time.monotonic() - self._began > _PATIENCE_SECONDS:
            self._began = 0.0
            run = self.operations.runs.get(self.run_id)
            if (other := self.operations.runs.waits_for(run)) is not None:
                self.say(run_text.waits(run, other, is_attended=self.operations.runs.is_attended()))

    def _tree(self) -> list[str]:
        tree = tree_of(self.operations, self.operations.runs.get(self.run_id), self.file)
        # Before it is cut: what is escaped is longer.
        return escaped("\n".join([tree, *self._remarks])).split("\n")

    def _draw(self, lines: list[str], *, most: int | None) -> None:
        """Draw over what was drawn. While it changes it must fit the terminal: what has scrolled away stays."""
        if most is not None:
            width = get_terminal_size().columns
            lines = [cut(line, width - 1) for line in run_text.cut(lines, most)]
        if lines == self._drawn and most is not None:
            return
        if self._drawn:
            # Up to where the tree began, and clear what is below.
            control(f"\x1b[{len(self._drawn)}F\x1b[J")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        self._drawn = lines
