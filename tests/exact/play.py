"""The course of a scenario: rows come in, a run meets a fault, people do something, and all ends well and exact."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from uuid import uuid4

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from dalsegno.errors import DalsegnoError
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.model.runs import RunStatus
from dalsegno.model.work_units import StatementState, UnitState, WorkUnit
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.store import Store, work_units
from tests.callers import admin
from tests.exact.faults import PUBLISHING, Injection, injected
from tests.exact.forms import Kind
from tests.exact.oracle import Hole, Truth
from tests.exact.place import Place
from tests.exact.protections import OFF
from tests.exact.scenarios import Scenario
from tests.exact.tables import Tables
from tests.exact.worker import start_and_finish
from tests.exact.wrappings import Author, Edit, Written
from tests.processes import PROCESSES
from tests.store.crashes import killed_at

#: So often people do what they are told to, before they give up.
_PATIENCE = 10
#: A run has some hundred moments at which the store does something.
_MOMENTS = 250


class Play:
    def __init__(self, place: Place, scenario: Scenario, catalog: str) -> None:
        self.place = place
        self.scenario = scenario
        self.chance: random.Random = scenario.chance
        name = f"s{scenario.number}_{uuid4().hex[:6]}"
        prefix = f"{scenario.number}_" if scenario.script.has_digits else ""
        targets = {each: (f"{catalog}.db.{prefix}{name}_{each}", kind) for each, kind in scenario.script.tables.items()}
        sources = [f"{catalog}.db.{name}_source", f"{catalog}.db.{name}_other"]
        self.tables = Tables(
            place.pyiceberg(catalog),
            [f"db.{each.rpartition('.')[2]}" for each in sources[: 1 + scenario.wrapping.has_two_sources]],
            {each: (f"db.{table.rpartition('.')[2]}", kind) for each, (table, kind) in targets.items()},
        )
        self.author = Author(
            name,
            scenario.script,
            scenario.wrapping,
            {each: table for each, (table, _) in targets.items()},
            sources[: 1 + scenario.wrapping.has_two_sources],
            retries=int(scenario.fault.is_retried),
            is_parallel=scenario.action.is_parallel,
            is_slow=scenario.fault.is_slow,
        )
        self.written: Written = self.author.write()
        #: What happened, to be told if it ends badly.
        self.steps: list[str] = [str(scenario)]
        #: The head of each branch of each target before the run that fails.
        self.heads: dict[str, dict[str, int]] = {}
        self.has_fault_happened = False
        #: Runs that people ended: they need not say why.
        self.killed: set[str] = set()

    def play(self) -> None:
        try:
            self._play()
        finally:
            self.place.proxy.relent()
            self.place.proxy.disarm()

    def _play(self) -> None:
        self.tables.make()
        self.push()
        if self.chance.random() < 0.5 or self.scenario.action.needs_history:
            self.tables.append(3)
            self.say("run without a fault")
            self.must_succeed(self.run())
        self.tables.append(4)
        self.heads = {name: self._heads(name) for name, _ in self.tables.targets.values()}
        run = self.run_with_fault()
        self.look(run)
        if self.chance.random() < 0.5:
            self.say("more rows come in")
            self.tables.append(3)
        self.say(f"people: {self.scenario.action.name}")
        with self._second_fault():
            try:
                self.scenario.action.do(self, run)
            except DalsegnoError as error:
                self.say(f"refused: {error.message} {error.hint or ''}")
            self.end_well()
        self.place.proxy.disarm()
        self.check()
        self.tables.append(3)
        self.say("one more run")
        self.must_succeed(self.run())

    # What is done.

    def say(self, text: str) -> None:
        self.steps.append(text)

    def push(self, edit: Edit | None = None) -> None:
        self.written = self.author.write(edit)
        for text in self.written.texts:
            self.place.operations.workflows.push(text)

    def start(self) -> RunView:
        return self.place.operations.runs.start(self.written.workflow_id, {})

    def run(self) -> RunView:
        return self.finished(self.start())

    def finished(self, run: RunView) -> RunView:
        run = self.place.operations.runs.finish(run.id)
        self.say(f"{run.name} is {run.status.value}: {self.place.said(run)}")
        return run

    def run_with_fault(self) -> RunView:
        fault, statements = self.scenario.fault, len(self.scenario.script.statements)
        if fault.moment == "never":
            return self.run()
        statement = self.chance.randint(PUBLISHING if self.scenario.script.is_atomic else 1, statements)
        is_often = self.scenario.wrapping.times > 1 or self.scenario.wrapping.has_two_sources
        skip = self.chance.choice([0, 0, 1]) if is_often else 0
        seconds = self.chance.uniform(0, 0.6)
        self.say(f"{fault.name}, at statement {statement} of {statements}, after {skip}")
        if fault.kills_worker:
            return self._run_elsewhere(statement, skip, seconds)
        if fault.commit:
            return self._run_with_odd_catalog(statement)
        injection = Injection(fault, self.place.settings, statement, skip, seconds)
        with injected(injection):
            run = self.run()
        self.has_fault_happened = injection.has_happened
        return run

    def _second_fault(self) -> AbstractContextManager[object]:
        """Something goes wrong once more, the first time that a certain statement is reached."""
        fault = self.scenario.second_fault
        if fault is None:
            return nullcontext()
        statement = self.chance.randint(1, len(self.scenario.script.statements))
        self.say(f"from now on: {fault.name}, at statement {statement}")
        return injected(Injection(fault, self.place.settings, statement))

    def _run_with_odd_catalog(self, statement: int) -> RunView:
        """What is kept back is released by the next commit, or when the scenario is over."""
        proxy = self.place.proxy
        proxy.arm(self.scenario.fault.commit, statement, self.scenario.fault.refusal)
        run = self.run()
        self.has_fault_happened = proxy.has_happened
        return run

    def _run_elsewhere(self, statement: int, skip: int, seconds: float) -> RunView:
        """In a process that is killed; then another one takes the run over, or people end it."""
        fault, key = self.scenario.fault, uuid4().hex
        root = str(self.place.settings.root)
        given = (root, self.written.workflow_id, key, fault.name, statement, skip, seconds, *OFF)
        if fault.moment:
            child = PROCESSES.Process(target=start_and_finish, args=given)
            child.start()
            child.join()
            self.has_fault_happened = child.exitcode != 0
        else:
            self.has_fault_happened = killed_at(self.chance.randint(1, _MOMENTS), start_and_finish, *given)
        self.say("the worker was killed" if self.has_fault_happened else "the worker ended before that")
        run = self.place.operations.runs.start(self.written.workflow_id, {}, idempotency_key=key)
        if self.chance.random() < 0.3 and not run.status.is_final:
            self.say(self.place.command("kill", run.name).text)
            self.killed.add(run.id)
        return self.finished(run)

    @contextmanager
    def another(self) -> Iterator[Operations]:
        """For another thread."""
        settings = self.place.settings
        with Operations(Store.open(settings.store), settings, admin("grace")) as operations:
            yield operations

    # What must hold.

    def look(self, run: RunView) -> None:
        """Exact, or not SUCCEEDED with a reason."""
        if not run.status.is_final:
            raise Hole(f"{run.name} has not ended: {run.status}")
        if run.status is not RunStatus.SUCCEEDED:
            for way in self.place.ways_on(self.place.said(run)):
                if not self.place.is_command(way):
                    raise Hole(f"there is no such command: dalsegno {' '.join(way)}")
            if run.id not in self.killed and not self.place.said(run):
                raise Hole(f"{run.name} is {run.status} and does not say why")
        elif not self.pending():
            self.check()
        elif not self.scenario.action.is_parallel:
            raise Hole(f"{run.name} is SUCCEEDED, but a capture is pending: {self.pending()}")

    def must_succeed(self, run: RunView) -> None:
        if run.status is not RunStatus.SUCCEEDED or self.pending():
            raise Hole(
                f"{run.name} is {run.status}, with {len(self.pending())} captures pending: {self.place.said(run)}"
            )
        self.check()

    def check(self) -> None:
        if found := self.processed().differences(self.tables):
            raise Hole("SUCCEEDED, but " + "; ".join(found))

    def processed(self) -> Truth:
        store = self.place.operations.store
        positions = {mark.table.name: mark.position.snapshot_id for mark in store.positions(self.author.consumer)}
        committed = [each for each in store.captures(self.author.consumer) if each.state is CaptureState.COMMITTED]
        processed, every = [], []
        for source in self.tables.sources:
            processed += self.tables.rows_until(source, positions.get(source.partition(".")[2]))
            every += [row for batch in self.tables.batches[source].values() for row in batch]
        first = self.tables.sources[0].partition(".")[2]
        captures = sum(any(each.table.name == first for each in capture.tables) for capture in committed)
        return Truth(self.scenario.script, self.scenario.wrapping, processed, every, captures)

    def pending(self) -> list[Capture]:
        store = self.place.operations.store
        return store.captures(self.author.consumer, pending_only=True)

    def units(self) -> list[WorkUnit]:
        """Work behind captures that are pending."""
        store = self.place.operations.store
        with store.database.reading() as connection:
            return work_units.behind(connection, [capture.id for capture in self.pending()])

    def is_begun(self) -> bool:
        return any(unit.is_begun for unit in self.units())

    # The ways on.

    def end_well(self) -> None:
        """Do what one is told to do until a run succeeds and nothing is left to process."""
        for _ in range(_PATIENCE):
            run = self.run()
            self.place.proxy.relent()
            self.look(run)
            if run.status is RunStatus.SUCCEEDED and not self.pending():
                return
            ways = self.place.ways_on(self.place.said(run))
            # What a command says that refuses is followed, too.
            for _ in range(_PATIENCE):
                if not ways:
                    break
                ways = self.follow(self.chance.choice(ways))
        raise Hole("no way on leads to an end")

    def follow(self, way: list[str]) -> list[list[str]]:
        """Type what one was told to; if that is refused, the ways on that it names."""
        if way[0] == "resolve":
            way = [*[each for each in way if "written" not in each], self.truth()]
        if "--leave-rows" in way:
            self.mend()
        done = self.place.command(*way)
        self.say(f"dalsegno {' '.join(way)}: {done.code} {done.text}")
        if "Usage:" in done.text:
            raise Hole(f"there is no such command: dalsegno {' '.join(way)}")
        return self.place.ways_on(done.text) if done.code and way[0] != "restart" else []

    def mend(self) -> None:
        """By hand, make targets what they were when the last capture was committed."""
        self.say("targets are mended by hand")
        truth = self.processed()
        for name, kind in self.tables.targets.values():
            self.tables.restore(name, kind, truth.rows(kind))

    def truth(self) -> str:
        """Whether the statement in doubt was executed, as somebody finds who looks at its targets."""
        for unit in self.units():
            for statement in unit.statements:
                if statement.state is StatementState.BEGUN and unit.state is UnitState.OPEN:
                    return self._truth_of(unit, statement.number)
        return "--not-written"

    def _truth_of(self, unit: WorkUnit, number: int) -> str:
        def is_of(snapshot: Snapshot) -> bool:
            summary = snapshot.summary.additional_properties if snapshot.summary else {}
            return summary.get("dalsegno.unit") == unit.id and summary.get("dalsegno.statement") == str(number)

        has: dict[str, bool] = {}
        text = unit.statement(number).text
        for name, _ in self.tables.targets.values():
            table = self.tables.load(name)
            if table is not None and name.partition(".")[2] in text:
                has[name] = any(is_of(snapshot) for snapshot in _in_line(table))
        if any(has.values()) and not all(has.values()):
            self._take_back_by_hand(unit, number, [name for name, is_there in has.items() if is_there])
            return "--not-written"
        return "--written" if any(has.values()) else "--not-written"

    def _take_back_by_hand(self, unit: WorkUnit, number: int, names: list[str]) -> None:
        """Of a statement with several targets, take back what was written to some."""
        for name in names:
            table = self.tables.load(name)
            assert table is not None
            for snapshot in _in_line(table):
                summary = snapshot.summary.additional_properties if snapshot.summary else {}
                if summary.get("dalsegno.unit") != unit.id or summary.get("dalsegno.statement") != str(number):
                    continue
                if snapshot.parent_snapshot_id is None:
                    self.tables.restore(name, Kind.ROWS, Counter())
                else:
                    table.manage_snapshots().rollback_to_snapshot(snapshot.parent_snapshot_id).commit()

    def _heads(self, name: str) -> dict[str, int]:
        table = self.tables.load(name)
        return {} if table is None else {ref: each.snapshot_id for ref, each in table.metadata.refs.items()}

    def targets(self, *, made: bool = False) -> list[tuple[str, Kind]]:
        """Those that are compared, and there from the beginning."""
        left_out = {Kind.STAGE, Kind.MADE} | (set() if made else {Kind.MADE_ROWS})
        return [(name, kind) for name, kind in self.tables.targets.values() if kind not in left_out]


def _in_line(table: Table) -> list[Snapshot]:
    """The snapshots that led to the head of a branch."""
    found: dict[int, Snapshot] = {}
    for ref in table.metadata.refs.values():
        at = table.metadata.snapshot_by_id(ref.snapshot_id)
        while at is not None:
            found[at.snapshot_id] = at
            parent = at.parent_snapshot_id
            at = None if parent is None else table.metadata.snapshot_by_id(parent)
    return list(found.values())
