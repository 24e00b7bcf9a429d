"""Replays what happened to the sources of a declared table, and more, and compares after each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any
from uuid import uuid4

from dalsegno.audit.comparison import Ask, Comparison, Difference
from dalsegno.audit.recomputation import ask, closed
from dalsegno.capture.lake import Lake
from dalsegno.capture.scratch import Scratch
from dalsegno.errors import UserError
from dalsegno.iceberg.catalogs import ConcurrentChange, LoadedTable
from dalsegno.iceberg.history import MAIN
from dalsegno.model.proofs import Outcome, Proof, ProofDifference, ProofStep
from dalsegno.model.refreshes import Cost
from dalsegno.model.tables import TableName
from dalsegno.operations.proving.changes import Maker
from dalsegno.operations.proving.history import Past, past_of
from dalsegno.operations.proving.oracle import check
from dalsegno.operations.proving.rehearsal import Refreshed, Rehearsal, rehearsing, remove_dead
from dalsegno.operations.proving.request import ProofRequest
from dalsegno.rewrite.analysis import Analysis, analyse, expanded, tables_in
from dalsegno.rewrite.facts import Fact
from dalsegno.rewrite.stated import stated_facts
from dalsegno.rewrite.tables import Name
from dalsegno.rewrite.texts import Edit
from dalsegno.spark.rewriting import Stand, renamed
from dalsegno.steps.declared.dimensions import pinned_names
from dalsegno.steps.declared.params import dimensions_of
from dalsegno.steps.declared.partitioning import written_partitions
from dalsegno.steps.declared.sources import current_namespace, described, find, parts_of, sources_of
from dalsegno.steps.declared.views import over_tables
from dalsegno.steps.spark.sessions import opened_for

Say = Callable[[str], None]
#: Fields of a step that are found when it is pushed, or that mean nothing to clones.
_DERIVED = ("sources", "pinned", "consumer", "audit_first_runs")
#: What the summary of a snapshot counts that changed something.
_CHANGED = ("added-", "deleted-", "removed-")


def prove(lake: Lake, request: ProofRequest, *, by: str, now: datetime, say: Say) -> Proof:
    """Replay and compare. Nothing but clones is written, and they are removed in any case."""
    left_over = remove_dead(lake.context)
    scratch = Scratch(lake.context)
    try:
        replayed = Replayed.of(lake, request)
        with rehearsing(lake.settings, scratch, replayed.catalogs, by) as operations:
            replay = _Replay(lake, request, replayed, scratch, say)
            found = replay.proof(Rehearsal(operations, replay.target, replay.query, replay.options()), by, now)
    finally:
        left_over += scratch.remove()
    return replace(found, left_over=left_over)


@dataclass(frozen=True)
class Replayed:
    """What a request is about: tables as they are, views expanded."""

    query: str
    target: TableName
    sources: Mapping[Name, LoadedTable]
    pinned: frozenset[TableName]
    past: Past

    @classmethod
    def of(cls, lake: Lake, request: ProofRequest) -> Replayed:
        query, target = over_tables(lake, request.query), lake.name(request.target)
        sources = sources_of(lake, query)
        if parts_of(target) in sources:
            raise UserError(f"The query reads its own target, {target}.", hint="Give the result another name.")
        names = [each.name for each in sources.values()]
        dimensions = dimensions_of(request.options.get("dimensions"))
        pinned = frozenset(pinned_names(lake.name, dimensions, query, names))
        return cls(query, target, sources, pinned, past_of(sources.values(), request.snapshots, pinned))

    @property
    def catalogs(self) -> frozenset[str]:
        return frozenset({self.target.catalog, *(each.name.catalog for each in self.sources.values())})


class _Replay:
    """The clones of one proof, and what is done to them."""

    def __init__(self, lake: Lake, request: ProofRequest, replayed: Replayed, scratch: Scratch, say: Say) -> None:
        self.lake, self.request, self.replayed, self.say = lake, request, replayed, say
        self.sources, self.target_name, self.past = replayed.sources, replayed.target, replayed.past
        self.clones = {
            table.name: scratch.clone_with_history(table, self.past.bases[table.name])
            for table in self.sources.values()
        }
        known = find(lake, self.target_name)
        # The target as it is decides how it is written.
        self.target = scratch.empty_clone(known) if known else scratch.name(self.target_name)
        self.expected = scratch.name(replace(self.target_name, name="expected"))
        self.sample = scratch.name(replace(self.target_name, name="sample"))
        self.analysis, self.query = self._over_clones()
        self.oracle = self._renamed() or self.query
        self.steps: list[ProofStep] = []
        self.difference: ProofDifference | None = None

    # The query over clones.

    def options(self) -> dict[str, Any]:
        """Those of the step, with the names of clones."""
        given = {name: value for name, value in self.request.options.items() if name not in _DERIVED}
        if "facts" in given:
            clones = {parts_of(name): parts_of(clone) for name, clone in self.clones.items()}
            given["facts"] = [
                str(replace(fact, table=clones[fact.table]) if fact.table else fact) for fact in self.facts
            ]
        if isinstance(given.get("dimensions"), Mapping):
            words = given["dimensions"].items()
            given["dimensions"] = {str(self.clones[self.lake.name(name)]): word for name, word in words}
        return given

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        return stated_facts(self.request.options.get("facts", ()), [described(each) for each in self.sources.values()])

    def _over_clones(self) -> tuple[Analysis, str]:
        tables, current = [described(each) for each in self.sources.values()], current_namespace(self.lake)
        query = expanded(self.replayed.query, tables, current=current)
        deterministic = tuple(self.request.options.get("deterministic", ()))
        analysis = analyse(query, tables, current=current, deterministic=deterministic)
        if analysis.refusals:
            raise UserError(f"{self.target_name} cannot be declared by this SELECT: {analysis.refusals[0]}")
        clones = {parts_of(name): clone.quoted for name, clone in self.clones.items()}
        edits = [Edit(each.start, each.end, clones[each.name]) for each in analysis.occurrences]
        return analysis, analysis.text.edited([*analysis.edits, *edits])

    def _renamed(self) -> str | None:
        """The user's own text with the names of clones, found without the rewriter; None if it leaves one out."""
        names: dict[Name, Stand] = {}
        for written in tables_in(self.replayed.query):
            name = self.lake.name(".".join(written))
            names |= {each: Stand(self.clones[name].quoted) for each in (written, parts_of(name))}
        text = renamed(self.replayed.query, names)
        clones = {parts_of(clone) for clone in self.clones.values()}
        return text if set(tables_in(text)) <= clones else None

    # The replay.

    def proof(self, rehearsal: Rehearsal, by: str, now: datetime) -> Proof:
        self.rehearsal = rehearsal
        total = 1 + len(self.past.commits)
        self.say(
            f"Proving {self.target_name} on clones of {', '.join(map(str, self.clones))}: "
            f"{len(self.past.commits)} snapshots of their history, then changes that are made up."
        )
        self._refresh("first refresh", "first refresh", None, is_synthetic=False)
        for commit in self.past.commits:
            if self.difference is not None:
                break
            self._move(self.clones[commit.table], commit.snapshot.id)
            self._refresh(str(commit), commit.kind, commit.table, is_synthetic=False, of=total)
        for change in self._made_up() if self._is_going_on() else ():
            self._refresh(*change, is_synthetic=True)
            if not self._is_going_on():
                break
        return self._concluded(by, now)

    def _is_going_on(self) -> bool:
        return self.difference is None

    def _move(self, clone: TableName, snapshot_id: int) -> None:
        """Make a snapshot the current one of a clone."""
        catalog = self.lake.catalog(clone.catalog)
        for _ in range(3):
            try:
                catalog.set_ref(catalog.load(clone), MAIN, {"snapshot-id": snapshot_id, "type": "branch"})
            except ConcurrentChange:
                continue
            return
        raise UserError(f"{clone} was changed by another process.", hint="Start the proof again.")

    def _made_up(self) -> Iterator[tuple[str, str, TableName | None]]:
        """Write changes to the clones, one after the other: what happened, its kind and the source."""
        number, moving = 0, [each for each in self.sources.values() if each.name not in self.replayed.pinned]
        for table in moving:
            maker, head = self._maker(table), self.lake.load(self.clones[table.name]).history().head
            # What comes back beside what it became would contradict a fact that nobody checks.
            returning = [maker.returning(head.id)] if head and not maker.trusted else []
            for change in (*maker.all(), *returning):
                number += 1
                if self._written(table.name, (maker.sampling(number), *change.statements)):
                    yield f"{change.kind} {table.name.name}", change.kind, table.name
        if len(moving) > 1:
            written = [
                self._written(table.name, (maker.sampling(number := number + 1), *maker.several()))
                for table in moving
                for maker in [self._maker(table)]
            ]
            if any(written):
                yield "all sources at once", "all at once", None

    def _maker(self, table: LoadedTable) -> Maker:
        clone = self.clones[table.name]
        facts = [fact for fact in self.facts if fact.table == parts_of(table.name)]
        return Maker.of(self.analysis, described(table), clone.quoted, self.sample.quoted, facts)

    def _written(self, source: TableName, statements: tuple[str, ...]) -> bool:
        """Execute statements; whether they changed rows of the clone."""
        clone = self.clones[source]
        before = set(self.lake.load(clone).history().snapshots)
        with self._asking() as ask_spark:
            for statement in statements:
                ask_spark(statement, 1)
        made = [each for each in self.lake.load(clone).history().snapshots.values() if each.id not in before]
        # A statement that finds no row may leave a snapshot, too.
        return any(each.count(name) for each in made for name in each.summary if name.startswith(_CHANGED))

    def _refresh(
        self, change: str, kind: str, source: TableName | None, *, is_synthetic: bool, of: int | None = None
    ) -> None:
        done = self.rehearsal.refresh()
        refused = done.refusal
        if done.refusal is not None:
            # So that the next step begins where the sources are.
            done = self.rehearsal.refresh(is_full=True)
        if done.refusal is not None:
            raise UserError(f"{self.target_name} cannot be refreshed by this SELECT: {done.refusal}")
        step = ProofStep(
            *(change, kind, source, is_synthetic, done.strategy, done.why),
            *(0, Outcome.EQUAL if refused is None else Outcome.REFUSED, done.cost, Cost(0, 0), refused),
        )
        self.steps.append(step if done.failure else self._compared(step, done))
        if done.failure:
            self._differs(done, None, done.failure)
        self.say(_line(len(self.steps), of, self.steps[-1]))

    def _compared(self, step: ProofStep, done: Refreshed) -> ProofStep:
        with self._asking() as ask_spark:
            target = self.lake.load(self.target)
            partitions = written_partitions(described(target))
            found = check(ask_spark, self.oracle, self.target.quoted, self.expected.quoted, partitions)
        if not found.comparison.is_equal:
            self._differs(done, found.comparison, None)
        full = Cost(self._bytes(*self.clones.values()), self._bytes(self.expected), found.seconds)
        outcome = step.outcome if found.comparison.is_equal else Outcome.DIFFERS
        return replace(step, rows=found.comparison.found_rows, full_cost=full, outcome=outcome)

    def _differs(self, done: Refreshed, found: Comparison | None, failure: str | None) -> None:
        number = len(self.steps) + (failure is None)
        if failure is not None:
            self.steps[-1] = replace(self.steps[-1], outcome=Outcome.DIFFERS)
        self.difference = ProofDifference(
            number,
            done.strategy,
            found.missing_rows if found else 0,
            found.superfluous_rows if found else 0,
            tuple(_shown(each) for each in found.differences) if found else (),
            ";\n".join(done.sql),
            failure,
        )

    def _bytes(self, *tables: TableName) -> int:
        heads = [self.lake.load(each).history().head for each in tables]
        return sum(head.count("total-files-size") or 0 for head in heads if head is not None)

    @contextmanager
    def _asking(self) -> Iterator[Ask]:
        """A session each: it remembers tables for a while, whatever others do to them."""
        session = opened_for(self.lake.settings, f"prove-{uuid4().hex}")
        try:
            if conf := self.request.options.get("conf"):
                session.configure(conf)
            yield partial(ask, session)
        finally:
            closed(session)

    # The verdict.

    def _concluded(self, by: str, now: datetime) -> Proof:
        steps = self.steps[1:]
        seen = Counter(each.kind for each in steps if not each.is_synthetic)
        made_up = Counter(each.kind for each in steps if each.is_synthetic)
        is_proven, verdict = self._verdict(steps)
        return Proof(
            self.target_name,
            tuple(self.clones),
            self.request.digest,
            now,
            by,
            is_proven,
            verdict,
            tuple(self.steps),
            dict(seen),
            dict(made_up),
            self.past.without,
            self.difference,
        )

    def _verdict(self, steps: list[ProofStep]) -> tuple[bool, str]:
        if self.difference is not None:
            return False, f"Not proven: after step {self.difference.step}, the target is not what the SELECT gives."
        refused = [each for each in steps if each.outcome is Outcome.REFUSED and not each.is_synthetic]
        if refused:
            return False, f"Not proven: a run would have refused {refused[0].change!r}. {refused[0].refusal}"
        if not steps:
            return False, "Not proven: the sources have no rows, so no change could be tried."
        full = sum(each.strategy == "full" for each in steps)
        how = f", {full} of them by a full refresh" if full else ""
        return True, f"Proven: equal to the full SELECT after each of {len(steps)} changes{how}."


def _shown(difference: Difference) -> Mapping[str, Any]:
    """A difference as JSON can hold it, and as people read it."""

    def row(values: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value if value is None or isinstance(value, str | int | float) else str(value)
            for name, value in values.items()
        }

    return {
        "kind": difference.kind,
        "expected": [row(each) for each in difference.expected],
        "found": [row(each) for each in difference.found],
    }


def _line(number: int, of: int | None, step: ProofStep) -> str:
    which = f"[{number}/{of}]" if of else f"[{number}]"
    took = f"{step.cost.seconds or 0:.1f} s, full {step.full_cost.seconds or 0:.1f} s"
    return f"{which} {step.change}: {step.strategy or 'nothing to do'}, {step.rows:,} rows, {took}: {step.outcome}"
