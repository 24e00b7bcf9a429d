"""What a step writes says for whom it was written.

Every snapshot that a step makes in Spark names the workflow, the run, the step, the attempt and the statement. If the
step consumes captures, it names these with their ranges, and the work unit: the same in every attempt, run and call.
``iceberg.evidence`` finds it again. Code of other kinds gets the same properties to write, and to look for
(``dalsegno.job``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from dalsegno.iceberg.evidence import STATEMENT, UNIT
from dalsegno.iceberg.stamps import PREFIX, ranges_text
from dalsegno.spark.connect import Session
from dalsegno.spark.failures import explained
from dalsegno.spark.rewriting import literal
from dalsegno.spark.statements import is_query, target_of
from dalsegno.steps.contract import Work

#: What Iceberg writes into the summary of every snapshot that a session of Spark makes.
_SPARK = "spark.sql.iceberg.snapshot-property."


def properties(work: Work, unit_id: str | None = None) -> dict[str, str]:
    """What the summary of every snapshot says that the attempt makes."""
    named = {"workflow": work.workflow_id, "run": str(work.run_number), "step": work.step_id, "attempt": work.key}
    if work.captures:
        ids = ",".join(capture.id for capture in work.captures)
        named |= {"captures": ids, "place": work.place, "ranges": ranges_text(work.captures)}
    found = {f"{PREFIX}{name}": value for name, value in named.items()}
    return found | {UNIT: unit_id or work.unit} if work.captures else found


def stamp(work: Work, unit_id: str | None = None) -> dict[str, str]:
    """The same as configuration of Spark."""
    return _for_spark(properties(work, unit_id))


def statement_stamp(number: int, statement: str) -> dict[str, str]:
    return _for_spark({STATEMENT: str(number), f"{PREFIX}digest": digest_of(statement)})


def digest_of(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()[:16]


def is_written_by(session: Session, work: Work, number: int, statement: str) -> bool | None:
    """Whether this very attempt, behind no capture, has written what a statement writes; None if nobody can tell."""
    if is_query(statement):
        return False
    target = target_of(statement)
    if target is None:
        return None
    wanted = {"attempt": work.key, "statement": str(number)}
    stamped = " AND ".join(f"s.summary['{PREFIX}{name}'] = {literal(value)}" for name, value in wanted.items())
    # The name is the user's own, from a statement that is executed with the same rights.
    query = (
        f"SELECT s.snapshot_id FROM {target}.snapshots s "
        f"JOIN {target}.history h ON s.snapshot_id = h.snapshot_id WHERE h.is_current_ancestor AND {stamped} LIMIT 1"
    )
    try:
        return bool(session.execute(query, 1).num_rows)
    except Exception as error:
        # What has no snapshots, such as a view, cannot be asked. No other failure may look like that.
        if not explained(error).is_refused:
            raise
        return None


def _for_spark(named: Mapping[str, str]) -> dict[str, str]:
    return {f"{_SPARK}{name}": value for name, value in named.items()}
