"""The part of the schema that workflows and their runs live in; as ``tables``, it is the schema as it is now."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Identity, Index, Integer, Table, Text

from dalsegno.store.partial_indexes import partial_index
from dalsegno.store.tables import Moment, metadata

_NUMBER = BigInteger().with_variant(Integer, "sqlite")

workflows = Table(
    "workflows",
    metadata,
    Column("id", Text, primary_key=True),
    Column("properties", JSON, nullable=False),
    # None: no version may be started by a trigger or by default.
    Column("active_version", Integer),
    Column("latest_version", Integer, nullable=False),
    # Counts on when the workflow is deleted and pushed again.
    Column("last_run", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("deleted_at", Moment),
)

versions = Table(
    "versions",
    metadata,
    Column("workflow_id", Text, ForeignKey("workflows.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("definition", JSON, nullable=False),
    # Of the definition: pushing the same text again makes no new version.
    Column("digest", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("created_by", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("workflow_id", Text, ForeignKey("workflows.id"), nullable=False),
    Column("number", Integer, nullable=False),
    # How often it was started: 1, and one more for every restart.
    Column("attempt", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("status", Text, nullable=False),
    # Why it ended as it did, or waits.
    Column("reason", Text),
    # Who stopped or killed it, if somebody did.
    Column("ended_by", Text),
    # Changes with everything that is decided about the run: what a process remembers of it holds for this number only.
    Column("revision", BigInteger, nullable=False),
    Column("is_paused", Boolean, nullable=False),
    # As they were asked for, and as they became.
    Column("run_params", JSON, nullable=False),
    Column("params", JSON, nullable=False),
    Column("initiator", JSON, nullable=False),
    # Of a subworkflow: whose step waits for it. The root is the run that somebody or something started.
    Column("parent_run", Text),
    Column("parent_flow", Text),
    Column("parent_step", Text),
    Column("root_run", Text, nullable=False),
    Column("idempotency_key", Text),
    # How many unique numbers its expressions have asked for.
    Column("last_unique_id", BigInteger, nullable=False, server_default="0"),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    # When it must have ended, if ever.
    Column("deadline", Moment),
    Index("uq_runs_number", "workflow_id", "number", unique=True),
    Index("uq_runs_idempotency_key", "workflow_id", "idempotency_key", unique=True),
    Index("ix_runs_status", "status", "workflow_id"),
    Index("ix_runs_root_run", "root_run"),
    # Lists, newest first: all runs, and those of a status.
    Index("ix_runs_created_at", "created_at", "id"),
    Index("ix_runs_status_created_at", "status", "created_at", "id"),
    Index("ix_runs_parent", "parent_flow", "parent_step"),
)

flows = Table(
    "flows",
    metadata,
    Column("id", Text, primary_key=True),
    Column("run_id", Text, ForeignKey("runs.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("ending", Text),
    # Of an iteration: the flow and the step of its loop, and which one it is.
    Column("parent_flow", Text),
    Column("parent_step", Text),
    Column("iteration", Integer),
    # What an iteration has beside its run's parameters.
    Column("params", JSON, nullable=False),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    Index("ix_flows_run_id", "run_id", "status"),
    Index("ix_flows_parent", "parent_flow", "parent_step", "iteration"),
)

steps = Table(
    "steps",
    metadata,
    Column("flow_id", Text, ForeignKey("flows.id"), primary_key=True),
    Column("step_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    # What ``plan.advance`` decides by.
    Column("status", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("tried", JSON, nullable=False),
    Column("ready_at", Moment),
    Column("fence", Integer, nullable=False),
    Column("ending", Text),
    Column("taken", JSON, nullable=False),
    Column("loop", JSON(none_as_null=True)),
    Column("failure", JSON(none_as_null=True)),
    # Who has it. The time only says that somebody does, and is so far ahead that it never comes.
    Column("lease_owner", Text),
    Column("lease_until", Moment),
    # What its runner is told, and what it told.
    Column("params", JSON(none_as_null=True)),
    Column("outputs", JSON(none_as_null=True)),
    Column("handle", JSON(none_as_null=True)),
    Column("progress", JSON(none_as_null=True)),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("ended_at", Moment),
    Column("deadline", Moment),
)
partial_index(
    "ix_steps_ready_at",
    steps.c.ready_at,
    where=steps.c.ready_at.is_not(None),
)
partial_index(
    "ix_steps_lease_until",
    steps.c.lease_until,
    where=steps.c.lease_until.is_not(None),
)
partial_index(
    "ix_steps_deadline",
    steps.c.deadline,
    where=steps.c.status == "RUNNING",
)
Index("ix_steps_run_id", steps.c.run_id, steps.c.status)

templates = Table(
    "templates",
    metadata,
    Column("job_type", Text, primary_key=True),
    Column("version", Text, primary_key=True),
    Column("definition", JSON, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("changed_by", Text, nullable=False),
)

#: A claimed step holds one for each limit that it falls under. It comes and goes with the claim, in one transaction.
permits = Table(
    "permits",
    metadata,
    Column("name", Text, primary_key=True),
    Column("flow_id", Text, primary_key=True),
    Column("step_id", Text, primary_key=True),
)

limits = Table(
    "limits",
    metadata,
    Column("tag", Text, primary_key=True),
    Column("most", Integer, nullable=False),
)

breakpoints = Table(
    "breakpoints",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("step_id", Text, primary_key=True),
)

#: What was asked of a run, or happened to it elsewhere, and whoever works on it has not yet looked at.
inbox = Table(
    "inbox",
    metadata,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("message", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)

#: Append-only: what became of runs and steps.
events = Table(
    "events",
    metadata,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("flow_id", Text),
    Column("step_id", Text),
    Column("attempt", Integer),
    Column("kind", Text, nullable=False),
    Column("data", JSON, nullable=False),
    Column("happened_at", Moment, nullable=False),
    Index("ix_events_run_id", "run_id", "id"),
    sqlite_autoincrement=True,
)

#: Processes that run steps. A dead one's steps are taken over.
nodes = Table(
    "nodes",
    metadata,
    Column("id", Text, primary_key=True),
    # The machine, and where there are such, the namespace in which the process has its number.
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    # Tells a process from a later one with the same number; like no process once it has left its steps to others.
    Column("process_began", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    # One more with every sign of life.
    Column("beat", BigInteger, nullable=False, server_default="0"),
)

#: What may start runs of a workflow: the triggers of its active version. They come and go with its being active.
triggers = Table(
    "triggers",
    metadata,
    Column("workflow_id", Text, ForeignKey("workflows.id"), primary_key=True),
    # time, signal or incremental.
    Column("kind", Text, primary_key=True),
    # What it says: the same trigger of another version goes on where this one was.
    Column("name", Text, primary_key=True),
    # Of a time trigger: every due time up to here is dealt with.
    Column("upto", Moment),
    # When there is something to do next; None: nobody knows.
    Column("next_at", Moment),
    # What else it remembers.
    Column("state", JSON, nullable=False),
    Index("ix_triggers_next_at", "kind", "next_at"),
)

#: What one process at a time does for all of them.
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    # None: nobody has it.
    Column("owner", Text),
    # One more with every owner.
    Column("term", BigInteger, nullable=False),
    # One more with every sign of life.
    Column("beat", BigInteger, nullable=False),
)

#: What was announced. Whoever announces a signal holds its name, so that later ones have higher numbers.
signals = Table(
    "signals",
    metadata,
    Column("id", _NUMBER, Identity(), primary_key=True),
    Column("name", Text, nullable=False),
    # Announcing again with the same key is the same signal.
    Column("key", Text),
    Column("params", JSON, nullable=False),
    Column("payload", JSON, nullable=False),
    # Who announced it, and of a step: which one.
    Column("source", JSON, nullable=False),
    Column("announced_at", Moment, nullable=False),
    Index("uq_signals_key", "name", "key", unique=True),
    Index("ix_signals_name", "name", "id"),
    sqlite_autoincrement=True,
)

#: Which signals steps wait for, or have waited for: one row for each dependency.
signal_waits = Table(
    "signal_waits",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("step_id", Text, primary_key=True),
    # Which dependency of the step, from 0.
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_id", Text, nullable=False),
    Column("signal_name", Text, nullable=False),
    Column("wanted", JSON, nullable=False),
    # The signal that came; None: the step waits for one.
    Column("signal_id", BigInteger),
    Index("ix_signal_waits_run_id", "run_id"),
)
partial_index(
    "ix_signal_waits_signal_name",
    signal_waits.c.signal_name,
    where=signal_waits.c.signal_id.is_(None),
)

#: Which triggers are to be told of a signal. They come and go with the triggers.
signal_subscriptions = Table(
    "signal_subscriptions",
    metadata,
    Column("signal_name", Text, primary_key=True),
    Column("workflow_id", Text, primary_key=True),
    Column("trigger_name", Text, primary_key=True),
    Index("ix_signal_subscriptions_workflow_id", "workflow_id", "trigger_name"),
)

#: Signals that a trigger was told of and that have not begun a run yet.
signal_arrivals = Table(
    "signal_arrivals",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("trigger_name", Text, primary_key=True),
    Column("signal_id", _NUMBER, ForeignKey("signals.id"), primary_key=True, autoincrement=False),
    Column("signal_name", Text, nullable=False),
    # Only those of one group join; None: nobody has looked at it.
    Column("group_name", Text),
    # With which others it begins a run: the key of the join.
    Column("join_key", Text),
    # The idempotency key of that run, where the trigger says it.
    Column("run_key", Text),
    Index("ix_signal_arrivals_group_name", "workflow_id", "trigger_name", "group_name", "signal_name", "signal_id"),
)
