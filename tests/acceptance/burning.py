"""A worker that dies, and a writer that never rests: see ``test_under_fire``."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from dalsegno.operations.facade import Operations
from dalsegno.settings import load
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.store import Store
from tests.callers import admin

#: Lives as long as it has work to do.
UNHARMED = 0.0


def start_and_work(folder: str, workflow_id: str, key: str, seconds: float) -> None:
    """Run a workflow once, whichever process began it; and be killed after so many seconds."""
    if seconds != UNHARMED:
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    settings = load(working_folder=Path(folder), environment={})
    with Operations(Store.open(settings.store), settings, admin()) as operations:
        operations.runs.start(workflow_id, idempotency_key=key)
        operations.runs.work()
    # Not by returning: the timer may still run.
    os._exit(0)


class Writer:
    """Writes to two tables at random, and maintains them: one is only appended to, rows of the other change and go."""

    def __init__(self, address: str, seed: int) -> None:
        self._session = Session(address, session_id_for(uuid4().hex))
        self._chance = random.Random(seed)
        self._next_id = 0
        #: What was done, and how often; what another writer to the table's metadata got in the way of is not counted.
        self.done: dict[str, int] = {}
        #: Table → when its consumer last looked, at the latest: what came before is processed or pinned.
        self.looked_at: dict[str, datetime] = {}

    def write(self) -> None:
        """Do one thing."""
        weights = {self.append: 6, self.change: 6, self.forget: 2, self.compact: 2, self.expire: 2}
        do: Callable[[], None] = self._chance.choices(list(weights), list(weights.values()))[0]
        try:
            do()
        except Exception as error:
            # A pin moved meanwhile, and Iceberg does not try this again; nothing was written.
            if "CommitFailedException" not in str(error) and "ValidationException" not in str(error):
                raise
        else:
            self.done[do.__name__] = self.done.get(do.__name__, 0) + 1

    def append(self) -> None:
        rows = ", ".join(f"({self._new_id()}, {self._day()}, {self._title()}, 1)" for _ in range(3))
        self._sql(f"INSERT INTO lake.db.plays VALUES {rows}")

    def change(self) -> None:
        keys = self._chance.sample(range(40), 4)
        rows = ", ".join(f"({key}, 'name-{self._new_id()}')" for key in keys)
        self._sql(
            f"MERGE INTO lake.db.profiles t USING (SELECT * FROM VALUES {rows} AS v(id, name)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
        )

    def forget(self) -> None:
        self._sql(f"DELETE FROM lake.db.profiles WHERE id % 9 = {self._chance.randint(0, 8)}")

    def compact(self) -> None:
        everything = "options => map('rewrite-all', 'true')"
        self._sql(f"CALL lake.system.rewrite_data_files(table => 'db.{self._either()}', {everything})")

    def expire(self) -> None:
        """All that expiry may take; what came after the consumer's last look has a little longer."""
        table = self._either()
        if looked_at := self.looked_at.get(table):
            moment = f"TIMESTAMP '{looked_at:%Y-%m-%d %H:%M:%S.%f}'"
            self._sql(
                f"CALL lake.system.expire_snapshots(table => 'db.{table}', older_than => {moment}, retain_last => 1)"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write on and on in the background."""
        enough = threading.Event()
        failures: list[BaseException] = []

        def write_on() -> None:
            try:
                while not enough.wait(self._chance.random() / 2):
                    self.write()
            except BaseException as error:  # noqa: BLE001 - it is raised where somebody sees it
                failures.append(error)

        thread = threading.Thread(target=write_on, daemon=True)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()
        if failures:
            raise failures[0]

    def _sql(self, statement: str) -> None:
        self._session.execute(statement, 1)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _day(self) -> str:
        # Most rows are of today, some are late.
        return f"'2026-01-{self._chance.choice([28, 28, 28, 27, 26, self._chance.randint(1, 25)]):02}'"

    def _title(self) -> str:
        return f"'title-{self._chance.randint(1, 12)}'"

    def _either(self) -> str:
        return self._chance.choice(["plays", "profiles"])
