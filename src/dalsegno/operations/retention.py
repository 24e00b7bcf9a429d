"""Lets go of what is too old: finished runs with all that was remembered of them, and the files of their steps.

Everything is done in small batches, and may be stopped and done again at any time.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from dalsegno.settings import Settings
from dalsegno.store import Store, audit_log, outbox, retention

log = logging.getLogger(__name__)

_RUNS, _EVENTS, _FOLDERS = 50, 1000, 200


@dataclass(frozen=True)
class Forgotten:
    """How much was let go of."""

    runs: int = 0
    events: int = 0


@dataclass(frozen=True)
class Retention:
    settings: Settings
    store: Store
    clock: Callable[[], datetime]

    def forget_runs(self, may_go_on: Callable[[], bool] = lambda: True) -> Forgotten:
        """Delete what the store remembers of runs that ended long ago."""
        before = self.clock() - timedelta(days=self.settings.keep_runs_days)
        runs = sum(self._runs(before, may_go_on))
        events = sum(self._events(before, may_go_on))
        with self.store.database.writing() as connection:
            outbox.forget(connection, before)
            if runs or events:
                # Many transactions have deleted them: this sums it up.
                audit_log.describe("store", "store", after={"deleted_runs": runs, "deleted_events": events})
        if runs:
            log.info("deleted %s runs that ended before %s", runs, f"{before:%Y-%m-%d}")
        return Forgotten(runs, events)

    def _runs(self, before: datetime, may_go_on: Callable[[], bool]) -> Iterator[int]:
        after, least = "", self.settings.keep_runs_least
        while may_go_on():
            with self.store.database.reading() as connection:
                roots = retention.old_roots(connection, before, least, after=after, limit=_RUNS)
            if not roots:
                return
            for root in roots:
                with self.store.database.writing() as connection:
                    deleted = retention.delete_family(connection, root, before, least)
                yield len(deleted)
            after = roots[-1]

    def _events(self, before: datetime, may_go_on: Callable[[], bool]) -> Iterator[int]:
        after = 0
        while may_go_on():
            with self.store.database.writing() as connection:
                done = retention.delete_events(
                    connection, before, self.settings.keep_runs_least, after=after, limit=_EVENTS
                )
            if done is None:
                return
            yield done[0]
            after = done[1]

    def remove_files(self, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """Delete the folders of runs that ended long ago, or are not there any more: how many.

        They are on the machine that ran the steps, so each machine does this for itself.
        """
        before = self.clock() - timedelta(days=self.settings.keep_logs_days)
        removed, batch = 0, dict[tuple[str, int], Path]()
        for key, folder in self._old_folders(before):
            if not may_go_on():
                return removed
            batch[key] = folder
            if len(batch) >= _FOLDERS:
                removed += self._remove(batch, before)
                batch.clear()
        return removed + self._remove(batch, before)

    def _old_folders(self, before: datetime) -> Iterator[tuple[tuple[str, int], Path]]:
        """By workflow and number; a folder in which something new was made later is none of them."""
        if not self.settings.jobs_path.is_dir():
            return
        for workflow in sorted(self.settings.jobs_path.iterdir()):
            for folder in sorted(workflow.iterdir()) if _is_folder(workflow) else ():
                is_run = folder.name.isascii() and folder.name.isdecimal() and _is_folder(folder)
                if is_run and folder.stat().st_mtime < before.timestamp():
                    yield (workflow.name, int(folder.name)), folder

    def _remove(self, folders: dict[tuple[str, int], Path], before: datetime) -> int:
        if not folders:
            return 0
        with self.store.database.reading() as connection:
            unneeded = retention.ended_before(connection, folders.keys(), before)
        for key in unneeded:
            shutil.rmtree(folders[key], ignore_errors=True)
        return len(unneeded)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
