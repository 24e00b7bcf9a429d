"""Work units: what a step does behind the captures that it consumes, statement by statement.

A unit is found by what it works on, not by who does it: a retry, a restart, the next run and a second caller of the
same workflow all resume the same unit. The record is kept when the work is done: it says what was written where.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class UnitState(StrEnum):
    #: Planned, begun or interrupted.
    OPEN = "open"
    #: Every statement is done.
    DONE = "done"
    #: Somebody rolls its targets back, or died doing so.
    UNDOING = "undoing"
    #: Its targets are as they were before; the next who asks begins anew.
    UNDONE = "undone"


class StatementState(StrEnum):
    PLANNED = "planned"
    #: Sent to Spark; how it ended is not known yet.
    BEGUN = "begun"
    DONE = "done"


@dataclass(frozen=True)
class UnitKey:
    """What makes two pieces of work the same: everything but who asks, and when."""

    #: The captures that the step consumes, by id.
    captures: tuple[str, ...]
    #: The workflow that the step belongs to: the called one, if a subworkflow was called.
    workflow_id: str
    step_id: str
    #: What callers and loops gave it, as JSON.
    inputs: str = "[]"

    @property
    def digest(self) -> str:
        named = json.dumps([list(self.captures), self.workflow_id, self.step_id, self.inputs])
        return hashlib.sha256(named.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class TableState:
    """A table as it was at one moment, as far as is needed to tell later what has happened since."""

    #: None: there was no such table.
    uuid: str | None = None
    #: Branches that people write to, and the snapshot at the head of each.
    heads: Mapping[str, int] = field(default_factory=dict)
    #: The last sequence number; 0 in format version 1.
    sequence: int = 0
    schema_id: int = 0

    def as_json(self) -> dict[str, Any]:
        # Ids of snapshots have 64 bits, and many readers of JSON keep 53.
        heads = {name: str(snapshot_id) for name, snapshot_id in self.heads.items()}
        return {"uuid": self.uuid, "heads": heads, "sequence": self.sequence, "schema": self.schema_id}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> TableState:
        heads = {name: int(snapshot_id) for name, snapshot_id in found["heads"].items()}
        return cls(found["uuid"], heads, found["sequence"], found.get("schema", 0))


@dataclass(frozen=True)
class Statement:
    """One statement of a unit, as it is executed: parameters filled in, secrets by reference."""

    number: int
    text: str
    state: StatementState = StatementState.PLANNED
    #: The table that it writes to, catalog first; None if it writes to none, or that is not known.
    target: str | None = None
    #: The target before the statement; None if it could not be asked.
    before: TableState | None = None
    #: The snapshot that it made, where that is known.
    after: int | None = None
    #: Where it is, or was, executed.
    executor: Mapping[str, Any] | None = None
    #: The values of session variables that it set.
    variables: Mapping[str, Any] | None = None
    #: Why nobody could tell whether it was executed.
    doubt: str | None = None
    begun_at: datetime | None = None
    done_at: datetime | None = None


@dataclass(frozen=True)
class WorkUnit:
    #: What its snapshots are stamped with; another one after an undo.
    id: str
    key: UnitKey
    state: UnitState
    #: A digest of what the author wrote; empty if it is no SQL: then nothing is known but that it was begun.
    template: str
    #: The run that began it, such as ``workflow/3``.
    begun_by: str
    created_at: datetime
    #: The root runs that have asked for it.
    visited: frozenset[str] = frozenset()
    #: A word of the process that works on it.
    owner: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    #: Where its statements write before they are published, if the step is atomic.
    branch: str | None = None
    #: What the step decided before its first statement, as JSON, if it decides anything: fixed for all who resume it.
    decision: Mapping[str, Any] | None = None

    @property
    def is_begun(self) -> bool:
        """Whether something of it was, or may have been, executed."""
        return self.state is not UnitState.OPEN or any(
            each.state is not StatementState.PLANNED for each in self.statements
        )

    @property
    def is_sql(self) -> bool:
        return bool(self.template)

    @property
    def name(self) -> str:
        return f"step {self.key.step_id!r} of {self.key.workflow_id}"

    def statement(self, number: int) -> Statement:
        return self.statements[number - 1]
