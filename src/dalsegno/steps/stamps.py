"""What Spark writes says for whom it was written, so that nobody writes it again.

Every snapshot that a step makes names the workflow, the run, the step, the attempt and the statement; and if the step
processes captures, these and its place in the workflow, which are the same in every attempt and in the next run. A
statement that is executed again looks for what it wrote before, and if it is there, it is done.
"""

from __future__ import annotations

import hashlib

from dalsegno.errors import UserError
from dalsegno.model.outcomes import FailureKind
from dalsegno.spark.connect import Session
from dalsegno.spark.failures import explained
from dalsegno.spark.statements import target_of
from dalsegno.steps.contract import Work

#: What Iceberg writes into the summary of every snapshot that the session makes.
_STAMP = "spark.sql.iceberg.snapshot-property.dalsegno."


def stamp(work: Work) -> dict[str, str]:
    """Names the attempt in every snapshot that it makes."""
    named = {"workflow": work.workflow_id, "run": str(work.run_number), "step": work.step_id, "attempt": work.key}
    if work.captures:
        named |= {"captures": ",".join(work.captures), "place": work.place}
    return {f"{_STAMP}{key}": value for key, value in named.items()}


def statement_stamp(number: int, statement: str) -> dict[str, str]:
    return {f"{_STAMP}statement": str(number), f"{_STAMP}digest": digest_of(statement)}


def digest_of(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()[:16]


def is_written(session: Session, work: Work, number: int, statement: str) -> bool:
    """Whether the table that a statement writes to has what it wrote for the same captures, in another attempt or run.

    What was rolled back since does not count. A table that cannot be asked, such as one that is not Iceberg's, has not.
    """
    target = target_of(statement) if work.is_repeated else None
    if target is None:
        return False
    wanted = {"captures": ",".join(work.captures), "workflow": work.workflow_id, "place": work.place}
    told = " AND ".join(
        f"s.summary['dalsegno.{key}'] = {_text(value)}" for key, value in {**wanted, "statement": str(number)}.items()
    )
    # The name is the user's own, from a statement that is executed with the same rights.
    query = (
        f"SELECT s.snapshot_id, s.summary['dalsegno.digest'] AS digest FROM {target}.snapshots s "
        f"JOIN {target}.history h ON s.snapshot_id = h.snapshot_id WHERE h.is_current_ancestor AND {told} LIMIT 1"
    )
    try:
        rows = session.execute(query, 1).to_pylist()
    except Exception as error:
        if explained(error).kind is FailureKind.PLATFORM:
            raise
        return False
    if rows and rows[0]["digest"] != digest_of(statement):
        raise UserError(
            f"Snapshot {rows[0]['snapshot_id']} of {target} was written by this statement for the same capture, but "
            "the statement read otherwise then; what of it is missing cannot be told.",
            hint=f"If nothing is: dalsegno commit {work.captures[0]}. Otherwise roll {target} back, and run it again.",
        )
    return bool(rows)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
