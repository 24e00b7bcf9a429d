"""Three nodes on one PostgreSQL, and what befalls them: by chance, but by the same chance for the same seed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from dalsegno import Lake
from dalsegno.errors import PlatformError
from tests.chaos.node import live
from tests.chaos.wires import Wire
from tests.chaos.workload import COPIED, STARTED, push_all
from tests.engine.support import Place
from tests.processes import PROCESSES
from tests.services.postgres import Postgres

NODES = 3
_ROWS = pa.schema([("id", pa.int64())])
Asked = TypeVar("Asked")


@dataclass
class Node:
    url: str
    root: Path
    wire: Wire
    wrong_by: Any = field(default_factory=lambda: PROCESSES.Value("d", 0.0))
    process: Any = None

    def ensure(self) -> None:
        """Start it, unless it lives."""
        if self.process is None or not self.process.is_alive():
            self.process = PROCESSES.Process(target=live, args=(str(self.root), self.url, self.wrong_by))
            self.process.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


class Storm:
    def __init__(self, folder: Path, postgres: Postgres, seed: int) -> None:
        self.folder = folder
        self.postgres = postgres
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.rows = 0
        #: The numbers of the signals that were announced and have to begin a run, each one of its own.
        self.news: list[int] = []
        #: What steps wait for that nobody has announced yet.
        self._unanswered: list[int] = []
        self._database = postgres.create_database()
        catalog = postgres.url(postgres.create_database())
        (folder / "dalsegno.toml").write_text(
            f'[catalogs.lake]\nuri = "{catalog}"\nwarehouse = "warehouse"\npin = true\n'
        )
        self.place = Place.at(folder, self.url(postgres.port))
        push_all(self.place)
        self._make_tables()
        self.nodes: list[Node] = []
        self._later: list[threading.Timer] = []

    def url(self, port: int) -> str:
        return Postgres(port).url(self._database)

    @contextmanager
    def lasting(self) -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(NODES):
                wire = stack.enter_context(Wire(self.postgres.port))
                self.nodes.append(Node(self.url(wire.port), self.folder, wire))
            try:
                for node in self.nodes:
                    node.ensure()
                yield
            finally:
                for node in self.nodes:
                    node.kill()

    # What befalls nodes.

    def strike(self) -> None:
        """Something happens, and after a moment the next thing may."""
        node = self.chance.choice(self.nodes)
        what: Callable[[Node], None] = self.chance.choices(
            [self._kill, self._drain, self._halt, self._cut, self._fall_silent, self._jump, self._restart_database],
            [70, 5, 4, 6, 4, 8, 3],
        )[0]
        what(node)
        self.done[what.__name__.strip("_")] += 1
        self._begin_something()
        time.sleep(self.chance.uniform(0.2, 2))
        for each in self.nodes:
            each.ensure()

    def calm(self) -> None:
        """All is well again, but for clocks that are ahead, so that whatever is due every two minutes is due."""
        while self._unanswered:
            self._answer()
        for timer in self._later:
            timer.join()
        for node in self.nodes:
            node.wire.mend()
            node.wrong_by.value = 130.0
            node.ensure()

    def _kill(self, node: Node) -> None:
        node.kill()

    def _drain(self, node: Node) -> None:
        node.process.terminate()

    def _halt(self, node: Node) -> None:
        """It stands still for a while, and then goes on as if nothing had happened."""
        os.kill(node.process.pid, signal.SIGSTOP)
        process = node.process.pid

        def go_on() -> None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

        self._after(self.chance.uniform(1, 20), go_on)

    def _cut(self, node: Node) -> None:
        node.wire.cut(silently=False)
        self._after(self.chance.uniform(0.5, 15), node.wire.mend)

    def _fall_silent(self, node: Node) -> None:
        node.wire.cut(silently=True)
        self._after(self.chance.uniform(0.5, 15), node.wire.mend)

    def _jump(self, node: Node) -> None:
        node.wrong_by.value = self.chance.choice([0, self.chance.uniform(-300, 600), self.chance.uniform(-5, 5)])

    def _restart_database(self, _: Node) -> None:
        self.postgres.restart()

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        self._later.append(timer)

    # What nodes have to do meanwhile.

    def _begin_something(self) -> None:
        number = sum(self.done.values())
        for index in range(self.chance.randint(1, 4)):
            self.start(self.chance.choice(STARTED), f"{number}-{index}")
        if number % 5 == 0:
            self._append()
            self.start("copies", str(number))
        if number % 3 == 0:
            announced = self._insist(lambda: self.place.operations.signals.announce("news", key=str(number)))
            self.news.append(announced.id)
            self.start("waits", str(number), n=number)
            self._unanswered.append(number)
            if self.chance.random() < 0.5:
                self._answer()

    def start(self, workflow_id: str, key: str, **params: int) -> None:
        self._insist(lambda: self.place.operations.runs.start(workflow_id, params, idempotency_key=key))

    def _answer(self) -> None:
        """Announce what a step waits for, perhaps before it has begun to."""
        n = self._unanswered.pop(0)
        self._insist(lambda: self.place.operations.signals.announce("answer", {"n": n}, key=str(n)))

    @staticmethod
    def _insist(ask: Callable[[], Asked]) -> Asked:
        """Whatever is asked for with a key is done once, however often the database fails in between."""
        while True:
            try:
                return ask()
            except PlatformError:
                time.sleep(0.1)

    def _make_tables(self) -> None:
        with Lake.open(self.place.operations.settings) as lake:
            catalog = lake.catalog("lake").pyiceberg
            catalog.create_namespace("db")
            for name in (*COPIED, *COPIED.values()):
                catalog.create_table(f"db.{name}", _ROWS)
        self._append()

    def _append(self) -> None:
        ids = list(range(self.rows, self.rows + 10))
        self.rows += len(ids)
        with Lake.open(self.place.operations.settings) as lake:
            for name in COPIED.values():
                lake.catalog("lake").pyiceberg.load_table(f"db.{name}").append(pa.table({"id": ids}, schema=_ROWS))

    def copied(self, workflow: str) -> list[int]:
        with Lake.open(self.place.operations.settings) as lake:
            found = lake.catalog("lake").pyiceberg.load_table(f"db.{workflow}").scan().to_arrow()
        return sorted(found.column("id").to_pylist())
