"""A process that does one thing to a lake and dies by `kill -9` at a step of its choosing.

Every call that makes something last (a file, an entry of the catalog, a transaction of the store) has two steps at
which a process can die: before it and after it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import wraps
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from dalsegno import Lake, Settings
from dalsegno.iceberg.catalogs.glue import GlueCatalog
from dalsegno.iceberg.catalogs.hive import HiveCatalog
from dalsegno.iceberg.catalogs.rest import RestCatalog
from dalsegno.iceberg.catalogs.sql import SqlCatalog
from dalsegno.iceberg.files import Files
from dalsegno.store import Store
from tests.processes import PROCESSES

CATALOGS: list[type] = [SqlCatalog, RestCatalog, GlueCatalog, HiveCatalog]
LASTING: list[tuple[type, list[str]]] = [
    (Files, ["write", "copy", "delete", "remove_empty_folder"]),
    *((kind, ["register", "forget", "create_view", "forget_view", "set_ref", "ensure_namespace"]) for kind in CATALOGS),
    (Store, ["record_capture", "mark_ready", "commit", "abandon", "mark_dropped", "move_checkpoint"]),
]

Deed = Callable[[Lake, str], object]


def capture(lake: Lake, table: str) -> str:
    return lake.capture(table, consumer="c").id


def capture_as_view(lake: Lake, table: str) -> str:
    return lake.capture(table, consumer="c", mode="view").id


def capture_both_ends(lake: Lake, table: str) -> str:
    return lake.capture(table, consumer="c", changes="before_after").id


def commit(lake: Lake, table: str) -> None:
    (pending,) = lake.store.captures("c", pending_only=True)
    lake.commit(pending.id)


def abandon(lake: Lake, table: str) -> None:
    (pending,) = lake.store.captures("c", pending_only=True)
    lake.abandon(pending.id)


def clean(lake: Lake, table: str) -> None:
    lake.clean()


def killed_at(step: int, settings: Settings, deed: Deed, table: str, log: Path) -> bool:
    """Whether a process that dies at this step died; it had finished before if not. The log says what it did."""
    log.write_text("")
    process = PROCESSES.Process(target=_live, args=(step, settings, deed, table, log))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), f"the process ended with {process.exitcode}"
    died = process.exitcode != 0
    process.close()
    return died


def all_at_once(count: int, settings: Settings, table: str) -> list[str]:
    """What captures of as many processes return, all begun at the same moment."""
    barrier, answers = PROCESSES.Barrier(count), PROCESSES.SimpleQueue()
    processes = [PROCESSES.Process(target=_race, args=(barrier, answers, settings, table)) for _ in range(count)]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]
    for process in processes:
        process.join(60)
        process.close()
    answers.close()
    return found


def _live(step: int, settings: Settings, deed: Deed, table: str, log: Path) -> None:
    steps = _Steps(step, log)
    for owner, names in LASTING:
        for name in names:
            setattr(owner, name, steps.around(f"{owner.__name__}.{name}", getattr(owner, name)))
    with Lake.open(settings) as lake:
        deed(lake, table)


def _race(barrier: Barrier, answers: Any, settings: Settings, table: str) -> None:
    with Lake.open(settings) as lake:
        barrier.wait()
        try:
            answers.put(capture(lake, table))
        except Exception as error:  # noqa: BLE001 - the other side must not wait for an answer for ever
            answers.put(repr(error))


class _Steps:
    def __init__(self, last: int, log: Path) -> None:
        self._left = last
        self._log = log
        self._lock = threading.Lock()

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def dying(*args: Any, **kwargs: Any) -> Any:
            self._at(f"before {name}")
            answer = call(*args, **kwargs)
            self._at(f"after {name}")
            return answer

        return dying

    def _at(self, what: str) -> None:
        with self._lock, self._log.open("a") as log:
            log.write(f"{what}\n")
            log.flush()
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
