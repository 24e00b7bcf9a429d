"""What is written says for whom it was written, so that nobody writes it again.

Every snapshot that a step makes in Spark names the workflow, the run, the step, the attempt and the statement; and if
the step processes captures, these with their ranges, and its place in the workflow, which are the same in every attempt
and in the next run. A statement that is executed again looks for what it wrote before, and if it is there, it is done.
Code of other kinds gets the same properties to write, and to look for (``dalsegno.job``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.errors import UserError
from dalsegno.iceberg.stamps import PREFIX, ranges_text
from dalsegno.model.outcomes import FailureKind
from dalsegno.spark.connect import Session
from dalsegno.spark.failures import explained
from dalsegno.spark.rewriting import literal
from dalsegno.spark.statements import is_query, target_of
from dalsegno.steps.contract import Work

#: What Iceberg writes into the summary of every snapshot that a session of Spark makes.
_SPARK = "spark.sql.iceberg.snapshot-property."


def properties(work: Work) -> dict[str, str]:
    """What the summary of every snapshot says that the attempt makes."""
    named = {"workflow": work.workflow_id, "run": str(work.run_number), "step": work.step_id, "attempt": work.key}
    if work.captures:
        named |= {"captures": _captures(work), "place": work.place, "ranges": ranges_text(work.captures)}
    return {f"{PREFIX}{name}": value for name, value in named.items()}


def stamp(work: Work) -> dict[str, str]:
    """The same as configuration of Spark."""
    return _for_spark(properties(work))


def statement_stamp(number: int, statement: str) -> dict[str, str]:
    return _for_spark({f"{PREFIX}statement": str(number), f"{PREFIX}digest": digest_of(statement)})


def digest_of(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Question:
    """Whether a table has what a statement wrote for the same captures, in another attempt or run."""

    #: SQL; what was rolled back since does not count. It yields ``snapshot_id`` and ``digest``, if there is one.
    query: str
    digest: str
    #: What is wrong if the digest is another one, behind "Snapshot 123", and what to do.
    other_wording: str
    hint: str


def question(work: Work, number: int, statement: str) -> Question | None:
    """None if there is nothing to ask for: it is the first time, or the statement writes to no table."""
    target = target_of(statement) if work.is_repeated else None
    if target is None:
        return None
    wanted = {"captures": _captures(work), "workflow": work.workflow_id, "place": work.place, "statement": str(number)}
    return Question(
        _query(target, wanted),
        digest_of(statement),
        f"of {target} was written by this statement for the same capture, but the statement read otherwise then; what "
        "of it is missing cannot be told.",
        f"If nothing is: dalsegno commit {work.captures[0].id}. Otherwise roll {target} back, and run it again.",
    )


def _query(target: str, wanted: Mapping[str, str]) -> str:
    told = " AND ".join(f"s.summary['{PREFIX}{name}'] = {literal(value)}" for name, value in wanted.items())
    # The name is the user's own, from a statement that is executed with the same rights.
    return (
        f"SELECT s.snapshot_id, s.summary['{PREFIX}digest'] AS digest FROM {target}.snapshots s "
        f"JOIN {target}.history h ON s.snapshot_id = h.snapshot_id WHERE h.is_current_ancestor AND {told} LIMIT 1"
    )


def is_written(session: Session, work: Work, number: int, statement: str) -> bool:
    """Whether a statement was executed for the same captures before.

    A table that cannot be asked, such as one that is not Iceberg's, has nothing of it.
    """
    asked = question(work, number, statement)
    if asked is None:
        return False
    rows = _found(session, asked.query)
    if rows and rows[0]["digest"] != asked.digest:
        raise UserError(f"Snapshot {rows[0]['snapshot_id']} {asked.other_wording}", hint=asked.hint)
    return bool(rows)


def is_written_by(session: Session, work: Work, number: int, statement: str) -> bool | None:
    """Whether this very attempt has written what a statement writes; None if that cannot be told."""
    if is_query(statement):
        return False
    target = target_of(statement)
    rows = _found(session, _query(target, {"attempt": work.key, "statement": str(number)})) if target else None
    return None if rows is None else bool(rows)


def _found(session: Session, query: str) -> list[dict[str, Any]] | None:
    """None if the table cannot be asked."""
    try:
        rows: list[dict[str, Any]] = session.execute(query, 1).to_pylist()
    except Exception as error:
        if explained(error).kind is FailureKind.PLATFORM:
            raise
        return None
    return rows


def _captures(work: Work) -> str:
    return ",".join(capture.id for capture in work.captures)


def _for_spark(named: Mapping[str, str]) -> dict[str, str]:
    return {f"{_SPARK}{name}": value for name, value in named.items()}
