"""Who may do what: the least role that each verb of ``Operations`` needs."""

from __future__ import annotations

from dalsegno.model.callers import Role

#: What changes something. Each writes to the audit log, in the transaction of its change.
LEAST_ROLE = {
    "runs.start": Role.OPERATOR,
    "runs.stop": Role.OPERATOR,
    "runs.kill": Role.OPERATOR,
    "runs.skip": Role.OPERATOR,
    "runs.pause": Role.OPERATOR,
    "runs.resume": Role.OPERATOR,
    "runs.restart": Role.OPERATOR,
    "signals.announce": Role.OPERATOR,
    "captures.capture": Role.OPERATOR,
    "captures.commit": Role.OPERATOR,
    "captures.abandon": Role.OPERATOR,
    "captures.drop": Role.OPERATOR,
    "captures.resolve": Role.OPERATOR,
    "captures.undo": Role.OPERATOR,
    "workflows.push": Role.AUTHOR,
    "workflows.push_file": Role.AUTHOR,
    "workflows.adopt": Role.AUTHOR,
    "workflows.activate": Role.AUTHOR,
    "workflows.deactivate": Role.AUTHOR,
    "workflows.delete": Role.AUTHOR,
    "workflows.set_breakpoint": Role.OPERATOR,
    "workflows.clear_breakpoint": Role.OPERATOR,
    "templates.push": Role.AUTHOR,
    "templates.delete": Role.AUTHOR,
    "checkpoints.set": Role.AUTHOR,
    "checkpoints.rebuild": Role.AUTHOR,
    "admin.set_limit": Role.ADMIN,
    "admin.clear_limit": Role.ADMIN,
    "admin.new_token": Role.ADMIN,
    "admin.clean": Role.ADMIN,
}

#: What works, or copies, but changes nothing that a caller would look up in the audit log.
UNRECORDED = {
    # The engine records what becomes of each step.
    "runs.finish": Role.OPERATOR,
    # Each workflow that they push and each run that they start is recorded.
    "models.push": Role.AUTHOR,
    "models.run": Role.AUTHOR,
    "runs.work": Role.OPERATOR,
    # A throw-away table of each catalog shows what it allows.
    "tables.check_catalogs": Role.OPERATOR,
    "tables.sql": Role.OPERATOR,
    # It writes to clones alone.
    "tables.prove": Role.OPERATOR,
    "audits.run": Role.OPERATOR,
    # They hold secrets.
    "tables.spark_configuration": Role.ADMIN,
    "admin.back_up": Role.ADMIN,
}

#: What only looks: any caller may.
READS = frozenset(
    {
        "models.check",
        "workflows.list",
        "workflows.versions",
        "workflows.newest_version",
        "workflows.definition",
        "workflows.file",
        "workflows.diff",
        "workflows.plan",
        "workflows.breakpoints",
        "runs.get",
        "runs.list",
        "runs.steps",
        "runs.events",
        "runs.last_event",
        "runs.log",
        "runs.waits_for",
        "runs.is_attended",
        "runs.typed_params",
        "captures.list",
        "captures.plan",
        "captures.query",
        "captures.query_setup",
        "captures.work",
        "checkpoints.list",
        "checkpoints.get",
        "checkpoints.history",
        "tables.list",
        "tables.rewrite",
        "tables.refreshes",
        "triggers.outlook",
        "signals.list",
        "templates.list",
        "admin.limits",
        "admin.history",
    }
)


def least_role(verb: str) -> Role:
    return LEAST_ROLE.get(verb) or UNRECORDED[verb]
