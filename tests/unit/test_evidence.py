"""What a target's history proves about a statement, and where it proves nothing."""

from __future__ import annotations

from typing import Any

from dalsegno.iceberg import evidence
from dalsegno.iceberg.evidence import Absent, Unclear, Written
from dalsegno.model.work_units import TableState

BEFORE = TableState("uuid", {"main": 1}, 1)
STAMP = {evidence.UNIT: "u", evidence.STATEMENT: "2"}


def table(*snapshots: dict[str, Any], **heads: int) -> dict[str, Any]:
    refs = {name: {"snapshot-id": head, "type": "branch"} for name, head in heads.items()}
    return {"table-uuid": "uuid", "snapshots": snapshots, "refs": refs, "current-snapshot-id": heads["main"]}


def snapshot(number: int, parent: int | None, **summary: str) -> dict[str, Any]:
    made = {"snapshot-id": number, "sequence-number": number, "timestamp-ms": number, "summary": summary}
    return made if parent is None else made | {"parent-snapshot-id": parent}


def verdict(found: dict[str, Any]) -> evidence.Verdict:
    return evidence.verdict(found, BEFORE, "u", 2)


def test_a_stamp_in_the_line_of_a_branch_is_proof() -> None:
    first, written = snapshot(1, None), snapshot(2, 1, **STAMP)
    assert verdict(table(first, written, main=2)) == Written(2)
    assert verdict(table(first, main=1)) == Absent()
    rolled_back = verdict(table(first, written, main=1))
    assert isinstance(rolled_back, Unclear)
    assert rolled_back.is_rolled_back


def test_what_was_cherry_picked_from_an_expired_snapshot_proves_nothing() -> None:
    """The copy has no stamp: only the snapshot that it was made of says who wrote it."""
    first, staged = snapshot(1, None), snapshot(2, 1, **STAMP, **{"wap.id": "w"})
    published = snapshot(3, 1, **{"source-snapshot-id": "2", "published-wap-id": "w"})
    assert verdict(table(first, staged, published, main=3)) == Written(2)
    found = verdict(table(first, published, main=3))
    assert isinstance(found, Unclear)
    assert "made of one that has expired" in found.because
    # What was published before the statement is not what it wrote.
    old = snapshot(1, None, **{"source-snapshot-id": "0"})
    assert verdict(table(old, snapshot(2, 1), main=2)) == Absent()


def test_fences_are_known_by_their_unit() -> None:
    found = table(snapshot(1, None), snapshot(2, 1, **{evidence.FENCE: "u"}), main=2)
    assert evidence.fences(found, "u") == {2}
    assert evidence.fences(found, "v") == set()
    assert verdict(found) == Absent()


def test_a_history_that_begins_anew_has_nothing_of_what_was_there() -> None:
    alone = {"added-records": "1", "total-records": "1", "added-data-files": "1", "total-data-files": "1"}
    assert evidence.began_anew(table(snapshot(3, None, **alone), main=3), BEFORE)
    # Expiry leaves a parent that is missing, or cuts it off: then there is more in the table than what was added.
    assert not evidence.began_anew(table(snapshot(3, 2, **alone), main=3), BEFORE)
    assert not evidence.began_anew(table(snapshot(3, None, **alone | {"total-records": "2"}), main=3), BEFORE)
    assert not evidence.began_anew(table(snapshot(1, None, **alone), snapshot(2, 1), main=2), BEFORE)


def test_a_table_whose_main_branch_is_gone_was_replaced() -> None:
    found = verdict({"table-uuid": "uuid", "snapshots": [snapshot(1, None)], "refs": {}, "current-snapshot-id": None})
    assert isinstance(found, Unclear)
    assert found.is_rolled_back
