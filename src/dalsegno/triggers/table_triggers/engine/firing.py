"""Runs that start because tables changed.

When a run is started is decided in ``plan``; here tables are looked at, and it is done. The starts of a
trigger are numbered, and a run's key follows from its number: whoever dies before the start is remembered, or does the
same at the same time, starts no second run, even if the tables have gone on in between.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from dalsegno.capture.lake import Lake
from dalsegno.engine.blueprints import Blueprints
from dalsegno.errors import DalsegnoError, PlatformError
from dalsegno.store import triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers.engine import Start
from dalsegno.triggers.table_triggers.capture import WatchedTables
from dalsegno.triggers.table_triggers.engine.memory import from_state, spans_of_run, to_state
from dalsegno.triggers.table_triggers.engine.watches import watches_of
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Memory, Rules, Unprocessed, Watch
from dalsegno.triggers.table_triggers.plan.decisions import Decision, decide
from dalsegno.triggers.table_triggers.spec import rules_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Duty:
    """A trigger of a version."""

    rules: Rules
    watches: tuple[Watch, ...]


class TableTriggers:
    """Used by one thread."""

    def __init__(self, lake: Lake, blueprint: Blueprints, start: Start) -> None:
        self.store = lake.store
        self.lake = lake
        self.blueprint = blueprint
        self.start = start
        self.tables = WatchedTables(lake.context)
        #: By workflow, version and name; None: it cannot be watched.
        self._duties: dict[tuple[str, int, str], _Duty | None] = {}

    def fire(self, now: datetime) -> datetime | None:
        """Look at all tables that are watched, and start what is due; when time alone leads to the next start."""
        with self.store.database.reading() as connection:
            rows = triggers.watched(connection, IncrementalTrigger.kind)
            # Before anybody's marks: what a run that has ended by now has committed is seen below.
            busy = triggers.with_open_runs(connection) if rows else set()
        duties = self._current(rows)
        found = self.tables.look({watch for _, duty in duties for watch in duty.watches})
        moments = []
        for row, duty in duties:
            if not all(watch in found for watch in duty.watches):
                continue
            of_trigger = {watch: found[watch] for watch in duty.watches}
            if any(of_trigger.values()) or row["state"].get("waiting"):
                moments.append(self._act(row, duty, of_trigger, now, is_open=row["workflow_id"] in busy))
        return min(filter(None, moments), default=None)

    def _current(self, rows: list[Row]) -> list[tuple[Row, _Duty]]:
        """What is to be done about each trigger that can be watched; those of other versions are forgotten."""
        known, self._duties = self._duties, {}
        current = []
        for row in rows:
            key = (row["workflow_id"], row["active_version"] or 0, row["name"])
            self._duties[key] = duty = known[key] if key in known else self._duty(*key)
            if duty is not None:
                current.append((row, duty))
        return current

    def _duty(self, workflow_id: str, version: int, name: str) -> _Duty | None:
        try:
            workflow = self.blueprint(workflow_id, version).workflow
            for trigger in workflow.triggers_of(IncrementalTrigger):
                rules = rules_of(trigger)
                if rules.name == name:
                    return _Duty(rules, watches_of(self.lake, workflow, trigger))
        except PlatformError:
            raise
        except DalsegnoError as error:
            log.warning("%s cannot be started when tables change: %s", workflow_id, error)
        # If it is not there, another version has become active since we looked.
        return None

    def _act(
        self, row: Row, duty: _Duty, found: Mapping[Watch, Unprocessed | None], now: datetime, *, is_open: bool
    ) -> datetime | None:
        before = from_state(row["state"], row["active_version"])
        by_key = {watch.key: each for watch, each in found.items()}
        decision = decide(duty.rules, before, by_key, now, is_open=is_open)
        try:
            if decision.starts:
                self._start(row, decision, found)
            elif decision.memory != before:
                self._remember(row, decision.memory)
        except DalsegnoError as error:
            # It stays due. The others must not wait for it.
            log.warning("tables of %s have changed, but it cannot be started: %s", row["workflow_id"], error)
        return decision.again_at

    def _start(self, row: Row, decision: Decision, found: Mapping[Watch, Unprocessed | None]) -> None:
        for each in found.values():
            if each is not None and each.refusal:
                log.warning("%s starts a run that will be refused: %s", row["workflow_id"], each.refusal)
        memory = decision.memory
        blueprint = self.blueprint(row["workflow_id"], row["active_version"])
        run = self.start(blueprint, _key(row, memory.starts), _initiator(row, found))
        if run.is_repeated:
            # Somebody started it who did not come to remember it. What has come since is for the next one.
            memory = replace(memory, started_at=run.created_at, started_for=spans_of_run(run.initiator))
        self._remember(row, memory)

    def _remember(self, row: Row, memory: Memory) -> None:
        with self.store.database.writing() as connection:
            state = {**row["state"], **to_state(memory, row["active_version"])}
            triggers.change(connection, row, upto=memory.started_at, state=state)


def _key(row: Row, number: int) -> str:
    """A trigger that is registered again counts from the beginning, but is another one."""
    trigger = sha256(row["name"].encode()).hexdigest()[:12]
    return f"{row['workflow_id']}/{trigger}/{row['state']['armed']}/{number}"


def _initiator(row: Row, found: Mapping[Watch, Unprocessed | None]) -> dict[str, object]:
    tables = {str(watch.table): _told(watch, each) for watch, each in found.items() if each is not None}
    return {"type": "INCREMENTAL", "by": "dalsegno", "trigger": row["name"], "tables": tables}


def _told(watch: Watch, each: Unprocessed) -> dict[str, object]:
    told: dict[str, object] = {
        "consumer": watch.consumer,
        "snapshots": each.snapshots,
        "files": each.files,
        "rows": each.rows,
        "bytes": each.bytes,
        # As texts: JSON's numbers are too short for some who read them.
        "span": [str(end) for end in each.span],
    }
    return told if each.refusal is None else {**told, "refusal": each.refusal}
