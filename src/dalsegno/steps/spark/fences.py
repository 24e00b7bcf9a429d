"""Fences: empty snapshots behind which a catalog accepts nothing that was made before them."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import suppress

from dalsegno.iceberg import evidence
from dalsegno.iceberg.catalogs import open_catalog
from dalsegno.iceberg.evidence import FENCE
from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads
from dalsegno.iceberg.publishing import allows_branches
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement
from dalsegno.settings import Settings
from dalsegno.spark.forms import form_of
from dalsegno.spark.server import Say, unsaid
from dalsegno.steps.spark import sessions


def can_fence(settings: Settings, statement: Statement, metadata: RawMetadata, keys: Collection[str]) -> bool:
    """Whether an empty snapshot makes the catalog refuse what the statement sent to it before.

    From format version 2 on its sequence number does. Otherwise a REST catalog looks at the branch that is written to:
    not if the table is replaced, and it cannot if there is no such branch yet. ``keys`` are the settings that the step
    makes.
    """
    table = TableName.of_quoted(statement.target or "")
    catalog = open_catalog(settings.catalog(table.catalog))
    if catalog.compares_whole_tables or metadata["format-version"] > 1:
        return True
    is_sent_elsewhere = sessions.WAP_BRANCH in keys and allows_branches(metadata)
    return not (form_of(statement.text).creates or is_sent_elsewhere)


def is_fenced(before: RawMetadata, now: RawMetadata, unit_id: str) -> bool:
    """Whether the empty snapshot arrived where we look: otherwise Spark knows another table by this name."""
    return bool(evidence.fences(now, unit_id) - evidence.fences(before, unit_id))


def fence(
    settings: Settings, statement: Statement, metadata: RawMetadata | None, unit_id: str, say: Say = unsaid
) -> None:
    """Make it impossible that what the statement sent to the catalog is still accepted there.

    An append of no rows moves the head of the branch, and the catalog accepts only what was made for that head.
    ``metadata`` is the target as it is now.
    """
    if statement.target is None or statement.before is None or statement.before.uuid is None:
        # A table that was not there is made once, whoever comes first.
        return
    if metadata is None or metadata["table-uuid"] != statement.before.uuid:
        # Nothing can arrive in a table that is gone.
        return
    table = TableName.of_quoted(statement.target)
    say(f"statement {statement.number}: nothing of it is in {table}; making sure that nothing arrives there later.")
    # A session of its own: the attempt's stamps what it writes, and what is empty must not count as written.
    session = sessions.opened_for(settings, f"fence/{unit_id}/{secrets.token_hex(8)}", say)
    try:
        session.configure({f"spark.sql.iceberg.snapshot-property.{FENCE}": unit_id})
        for branch in _branches(statement, metadata):
            name = table.quoted if branch == MAIN else f"{table.quoted}.`branch_{branch}`"
            session.execute(f"INSERT INTO {name} SELECT * FROM {name} WHERE false", 1)  # noqa: S608 - quoted
    finally:
        with suppress(Exception):
            session.release()


def _branches(statement: Statement, metadata: RawMetadata) -> list[str]:
    """The branches that the statement may write to: the main one, and those that it names.

    Where ``spark.wap.branch`` counts, a session may send it to any.
    """
    heads = branch_heads(metadata)
    known = statement.before.heads if statement.before else {}
    named = [name for name in known if allows_branches(metadata) or name in statement.text]
    return [MAIN, *(name for name in named if name != MAIN and name in heads)]
