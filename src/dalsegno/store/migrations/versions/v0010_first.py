"""The schema as it was first."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision: str | None = None


def moment() -> Any:
    return sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:  # noqa: PLR0915 - one for each table and index
    op.create_table(
        "audit_log",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("recorded_at", moment(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before_change", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after_change", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_log")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_caller", "audit_log", ["caller", "id"], unique=False)
    op.create_index("ix_audit_log_subject", "audit_log", ["subject", "id"], unique=False)
    op.create_table(
        "breakpoints",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("workflow_id", "step_id", name=op.f("pk_breakpoints")),
    )
    op.create_table(
        "captures",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", moment(), nullable=False),
        sa.Column("settled_at", moment(), nullable=True),
        sa.Column("settled_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("dropped_at", moment(), nullable=True),
        sa.Column("commit_wanted_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_captures")),
    )
    op.create_index("ix_captures_consumer", "captures", ["consumer", "created_at"], unique=False)
    op.create_index("ix_captures_created_by", "captures", ["created_by"], unique=False)
    op.create_table(
        "dalsegno_compatibility",
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("oldest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_dalsegno_compatibility")),
    )
    op.create_table(
        "events",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=True),
        sa.Column("step_id", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("happened_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_run_id", "events", ["run_id", "id"], unique=False)
    op.create_table(
        "file_contents",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_file_contents")),
    )
    op.create_table(
        "inbox",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lags",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("snapshots", sa.Integer(), nullable=True),
        sa.Column("oldest_at", moment(), nullable=True),
        sa.Column("measured_at", moment(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("told_at", moment(), nullable=True),
        sa.PrimaryKeyConstraint("consumer", "table_name", name=op.f("pk_lags")),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "limits",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tag", name=op.f("pk_limits")),
    )
    op.create_table(
        "nodes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("process_began", sa.Text(), nullable=False),
        sa.Column("started_at", moment(), nullable=False),
        sa.Column("seen_at", moment(), nullable=False),
        sa.Column("beat", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
    )
    op.create_table(
        "outbox",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("next_at", moment(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("sent_at", moment(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_next_at", "outbox", ["next_at"], unique=False)
    op.create_index("uq_outbox_key", "outbox", ["key", "channel"], unique=True)
    op.create_table(
        "permits",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", "flow_id", "step_id", name=op.f("pk_permits")),
    )
    op.create_table(
        "progress",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_progress")),
    )
    op.create_table(
        "signal_subscriptions",
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("trigger_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("signal_name", "workflow_id", "trigger_name", name=op.f("pk_signal_subscriptions")),
    )
    op.create_index(
        "ix_signal_subscriptions_workflow_id", "signal_subscriptions", ["workflow_id", "trigger_name"], unique=False
    )
    op.create_table(
        "signal_waits",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("signal_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("flow_id", "step_id", "number", name=op.f("pk_signal_waits")),
    )
    op.create_index("ix_signal_waits_run_id", "signal_waits", ["run_id"], unique=False)
    op.create_index(
        "ix_signal_waits_signal_name",
        "signal_waits",
        ["signal_name"],
        unique=False,
        sqlite_where=sa.text("signal_id IS NULL"),
        postgresql_where=sa.text("signal_id IS NULL"),
    )
    op.create_table(
        "signals",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("source", sa.JSON(), nullable=False),
        sa.Column("announced_at", moment(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signals")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_signals_name", "signals", ["name", "id"], unique=False)
    op.create_index("uq_signals_key", "signals", ["name", "key"], unique=True)
    op.create_table(
        "templates",
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("changed_at", moment(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_type", "version", name=op.f("pk_templates")),
    )
    op.create_table(
        "tokens",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("revoked_at", moment(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tokens")),
    )
    op.create_table(
        "work_units",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("captures", sa.JSON(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("begun_by", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("visited", sa.JSON(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("outputs", sa.JSON(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("decision", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_work_units")),
    )
    op.create_index("ix_work_units_digest", "work_units", ["digest"], unique=False)
    op.create_table(
        "workflows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("active_version", sa.Integer(), nullable=True),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("last_run", sa.Integer(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("changed_at", moment(), nullable=False),
        sa.Column("deleted_at", moment(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workflows")),
    )
    op.create_table(
        "capture_tables",
        sa.Column("capture_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("after_table_uuid", sa.Text(), nullable=False),
        sa.Column("after_branch", sa.Text(), nullable=False),
        sa.Column("after_snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("after_sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("after_timestamp_ms", sa.BigInteger(), nullable=True),
        sa.Column("after_schema_id", sa.Integer(), nullable=False),
        sa.Column("upto_table_uuid", sa.Text(), nullable=False),
        sa.Column("upto_branch", sa.Text(), nullable=False),
        sa.Column("upto_snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("upto_sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("upto_timestamp_ms", sa.BigInteger(), nullable=True),
        sa.Column("upto_schema_id", sa.Integer(), nullable=False),
        sa.Column("is_first", sa.Boolean(), nullable=False),
        sa.Column("is_full", sa.Boolean(), nullable=False),
        sa.Column("change_table", sa.Text(), nullable=False),
        sa.Column("dropped", sa.Boolean(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("capture_spec", sa.JSON(), server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name=op.f("fk_capture_tables_capture_id")),
        sa.PrimaryKeyConstraint("capture_id", "ordinal", name=op.f("pk_capture_tables")),
    )
    op.create_index(
        "uq_capture_tables_change_table",
        "capture_tables",
        ["change_table"],
        unique=True,
        sqlite_where=sa.text("dropped = 0"),
        postgresql_where=sa.text("dropped = false"),
    )
    op.create_index(
        "uq_capture_tables_pending",
        "capture_tables",
        ["consumer", "table_name"],
        unique=True,
        sqlite_where=sa.text("pending = 1"),
        postgresql_where=sa.text("pending = true"),
    )
    op.create_table(
        "checkpoints",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("capture_id", sa.Text(), nullable=True),
        sa.Column("moved_at", moment(), nullable=False),
        sa.Column("moved_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name=op.f("fk_checkpoints_capture_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("capture_id", name=op.f("uq_checkpoints_capture_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_checkpoints_consumer", "checkpoints", ["consumer"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("is_paused", sa.Boolean(), nullable=False),
        sa.Column("run_params", sa.JSON(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("initiator", sa.JSON(), nullable=False),
        sa.Column("parent_run", sa.Text(), nullable=True),
        sa.Column("parent_flow", sa.Text(), nullable=True),
        sa.Column("parent_step", sa.Text(), nullable=True),
        sa.Column("root_run", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("last_unique_id", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("started_at", moment(), nullable=True),
        sa.Column("ended_at", moment(), nullable=True),
        sa.Column("deadline", moment(), nullable=True),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_runs_workflow_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at", "id"], unique=False)
    op.create_index("ix_runs_parent", "runs", ["parent_flow", "parent_step"], unique=False)
    op.create_index("ix_runs_root_run", "runs", ["root_run"], unique=False)
    op.create_index("ix_runs_status", "runs", ["status", "workflow_id"], unique=False)
    op.create_index("ix_runs_status_created_at", "runs", ["status", "created_at", "id"], unique=False)
    op.create_index("uq_runs_idempotency_key", "runs", ["workflow_id", "idempotency_key"], unique=True)
    op.create_index("uq_runs_number", "runs", ["workflow_id", "number"], unique=True)
    op.create_table(
        "signal_arrivals",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("trigger_name", sa.Text(), nullable=False),
        sa.Column(
            "signal_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("signal_name", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("join_key", sa.Text(), nullable=True),
        sa.Column("run_key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["signal_id"], ["signals.id"], name=op.f("fk_signal_arrivals_signal_id")),
        sa.PrimaryKeyConstraint("workflow_id", "trigger_name", "signal_id", name=op.f("pk_signal_arrivals")),
    )
    op.create_index(
        "ix_signal_arrivals_group_name",
        "signal_arrivals",
        ["workflow_id", "trigger_name", "group_name", "signal_name", "signal_id"],
        unique=False,
    )
    op.create_table(
        "template_files",
        sa.Column("job_type", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("unstored", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["digest"], ["file_contents.digest"], name=op.f("fk_template_files_digest")),
        sa.ForeignKeyConstraint(
            ["job_type", "version"],
            ["templates.job_type", "templates.version"],
            name=op.f("fk_template_files_job_type"),
        ),
        sa.PrimaryKeyConstraint("job_type", "version", "field", "name", name=op.f("pk_template_files")),
    )
    op.create_index("ix_template_files_digest", "template_files", ["digest"], unique=False)
    op.create_table(
        "triggers",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("upto", moment(), nullable=True),
        sa.Column("next_at", moment(), nullable=True),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_triggers_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "kind", "name", name=op.f("pk_triggers")),
    )
    op.create_index("ix_triggers_next_at", "triggers", ["kind", "next_at"], unique=False)
    op.create_table(
        "versions",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["workflow_id"], ["workflows.id"], name=op.f("fk_versions_workflow_id")),
        sa.PrimaryKeyConstraint("workflow_id", "version", name=op.f("pk_versions")),
    )
    op.create_table(
        "work_statements",
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("after", sa.BigInteger(), nullable=True),
        sa.Column("executor", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("variables", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("doubt", sa.Text(), nullable=True),
        sa.Column("begun_at", moment(), nullable=True),
        sa.Column("done_at", moment(), nullable=True),
        sa.ForeignKeyConstraint(["unit_id"], ["work_units.id"], name=op.f("fk_work_statements_unit_id")),
        sa.PrimaryKeyConstraint("unit_id", "number", name=op.f("pk_work_statements")),
    )
    op.create_index("ix_work_statements_target", "work_statements", ["target"], unique=False)
    op.create_table(
        "work_unit_captures",
        sa.Column("capture_id", sa.Text(), nullable=False),
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name=op.f("fk_work_unit_captures_capture_id")),
        sa.ForeignKeyConstraint(["unit_id"], ["work_units.id"], name=op.f("fk_work_unit_captures_unit_id")),
        sa.PrimaryKeyConstraint("capture_id", "unit_id", name=op.f("pk_work_unit_captures")),
    )
    op.create_table(
        "proofs",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False
        ),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("query_digest", sa.Text(), nullable=False),
        sa.Column("is_proven", sa.Boolean(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proofs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_proofs_target", "proofs", ["target", "query_digest"], unique=False)
    op.create_table(
        "refreshes",
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("capture_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("workflow_version", sa.Integer(), nullable=False),
        sa.Column("run_number", sa.Integer(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("query_digest", sa.Text(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("bytes_read", sa.BigInteger(), nullable=False),
        sa.Column("bytes_written", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("committed_at", moment(), nullable=True),
        sa.ForeignKeyConstraint(["capture_id"], ["captures.id"], name=op.f("fk_refreshes_capture_id")),
        sa.ForeignKeyConstraint(["unit_id"], ["work_units.id"], name=op.f("fk_refreshes_unit_id")),
        sa.PrimaryKeyConstraint("unit_id", name=op.f("pk_refreshes")),
    )
    op.create_index("ix_refreshes_target", "refreshes", ["target", "committed_at"], unique=False)
    op.create_index("ix_refreshes_capture_id", "refreshes", ["capture_id"], unique=False)
    op.create_table(
        "refresh_reads",
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("read_as", sa.Text(), nullable=False),
        sa.Column("after_snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("upto_snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("file_count", sa.BigInteger(), nullable=False),
        sa.Column("row_count", sa.BigInteger(), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["unit_id"], ["refreshes.unit_id"], name=op.f("fk_refresh_reads_unit_id")),
        sa.PrimaryKeyConstraint("unit_id", "ordinal", name=op.f("pk_refresh_reads")),
    )
    op.create_index("ix_refresh_reads_table_name", "refresh_reads", ["table_name"], unique=False)
    op.create_table(
        "refresh_writes",
        sa.Column("unit_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("before_snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("snapshots", sa.JSON(), nullable=False),
        sa.Column("added_rows", sa.BigInteger(), nullable=False),
        sa.Column("removed_rows", sa.BigInteger(), nullable=False),
        sa.Column("added_bytes", sa.BigInteger(), nullable=False),
        sa.Column("is_companion", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["unit_id"], ["refreshes.unit_id"], name=op.f("fk_refresh_writes_unit_id")),
        sa.PrimaryKeyConstraint("unit_id", "ordinal", name=op.f("pk_refresh_writes")),
    )
    op.create_index("ix_refresh_writes_table_name", "refresh_writes", ["table_name"], unique=False)
    op.create_table(
        "checkpoint_positions",
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("table_uuid", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("timestamp_ms", sa.BigInteger(), nullable=True),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_checkpoint_positions_checkpoint_id")
        ),
        sa.PrimaryKeyConstraint("checkpoint_id", "table_name", name=op.f("pk_checkpoint_positions")),
    )
    op.create_table(
        "flows",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("parent_flow", sa.Text(), nullable=True),
        sa.Column("parent_step", sa.Text(), nullable=True),
        sa.Column("iteration", sa.Integer(), nullable=True),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("started_at", moment(), nullable=True),
        sa.Column("ended_at", moment(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_flows_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flows")),
    )
    op.create_index("ix_flows_parent", "flows", ["parent_flow", "parent_step", "iteration"], unique=False)
    op.create_index("ix_flows_run_id", "flows", ["run_id", "status"], unique=False)
    op.create_table(
        "positions",
        sa.Column("consumer", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("table_uuid", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("sequence_number", sa.BigInteger(), nullable=False),
        sa.Column("timestamp_ms", sa.BigInteger(), nullable=True),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.Column("checkpoint_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["checkpoint_id"], ["checkpoints.id"], name=op.f("fk_positions_checkpoint_id")),
        sa.PrimaryKeyConstraint("consumer", "table_name", name=op.f("pk_positions")),
    )
    op.create_table(
        "version_files",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.Column("unstored", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["digest"], ["file_contents.digest"], name=op.f("fk_version_files_digest")),
        sa.ForeignKeyConstraint(
            ["workflow_id", "version"],
            ["versions.workflow_id", "versions.version"],
            name=op.f("fk_version_files_workflow_id"),
        ),
        sa.PrimaryKeyConstraint("workflow_id", "version", "step_id", "field", "name", name=op.f("pk_version_files")),
    )
    op.create_index("ix_version_files_digest", "version_files", ["digest"], unique=False)
    op.create_table(
        "steps",
        sa.Column("flow_id", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("tried", sa.JSON(), nullable=False),
        sa.Column("ready_at", moment(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("taken", sa.JSON(), nullable=False),
        sa.Column("loop", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("failure", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", moment(), nullable=True),
        sa.Column("params", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("outputs", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("handle", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("started_at", moment(), nullable=True),
        sa.Column("ended_at", moment(), nullable=True),
        sa.Column("deadline", moment(), nullable=True),
        sa.ForeignKeyConstraint(["flow_id"], ["flows.id"], name=op.f("fk_steps_flow_id")),
        sa.PrimaryKeyConstraint("flow_id", "step_id", name=op.f("pk_steps")),
    )
    op.create_index(
        "ix_steps_deadline",
        "steps",
        ["deadline"],
        unique=False,
        sqlite_where=sa.text("status = 'RUNNING'"),
        postgresql_where=sa.text("status = 'RUNNING'"),
    )
    op.create_index(
        "ix_steps_lease_until",
        "steps",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_index(
        "ix_steps_ready_at",
        "steps",
        ["ready_at"],
        unique=False,
        sqlite_where=sa.text("ready_at IS NOT NULL"),
        postgresql_where=sa.text("ready_at IS NOT NULL"),
    )
    op.create_index("ix_steps_run_id", "steps", ["run_id", "status"], unique=False)
