"""A plan tells what a capture of the same parameters does, and does nothing itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from dalsegno.capture.planning import TablePlan
from dalsegno.cli import plan_text, text
from dalsegno.errors import UnknownName
from dalsegno.model.captures import ChangeKind, Mode
from dalsegno.plan.forecast import Cost
from tests.iceberg.support import COPY_ON_WRITE, MERGE_MANIFESTS, MERGE_ON_READ, Place, Source

pytestmark = pytest.mark.spark


def planned(source: Source, consumer: str = "c", **wishes: Any) -> TablePlan:
    (plan,) = source.place.lake.plan(source.name, consumer=consumer, **wishes)
    return plan


def changed(place: Place, version: int = 2, properties: dict[str, str] | None = None) -> Source:
    """A table of three days that c has processed, with rows changed on one and added to another."""
    source = place.table("id bigint, day string", partitioned="day", version=version, properties=properties)
    for number in range(3):
        source.insert(*(f"{10 * number + row}, 'd{number}'" for row in range(5)))
    source.capture(start="latest")
    source.sql("update {t} set id = -id where id = 11")
    source.insert("30, 'd2'")
    return source


def measured(source: Source, snapshot: int) -> dict[str, int]:
    """Data file → its size at a snapshot, as Spark tells."""
    query = f"select file_path, file_size_in_bytes from {source.full}.files version as of {snapshot} where content = 0"
    return dict(source.place.sql(query))


@pytest.mark.parametrize(
    ("version", "modes"),
    [
        pytest.param(1, COPY_ON_WRITE | MERGE_MANIFESTS, id="v1"),
        pytest.param(2, COPY_ON_WRITE, id="v2-copy-on-write"),
        pytest.param(3, MERGE_ON_READ, id="v3-merge-on-read"),
    ],
)
@pytest.mark.parametrize("kind", ["before_after", "upserts"])
def test_both_ends(place: Place, version: int, modes: dict[str, str], kind: str) -> None:
    source = changed(place, version, modes)
    wishes: dict[str, Any] = {"changes": kind, "keys": ["id"]}
    plan = planned(source, **wishes)
    assert (plan.refusal, plan.exact, plan.changes) == (None, True, ChangeKind(kind))
    assert plan.snapshots == {"append: captured": 1, "overwrite: captured": 1}
    changes = source.capture(**wishes)
    is_told_by_ids = version == 3 and kind == "upserts"
    for told in (plan_text.plans([plan]), text.changes(changes, None)):
        assert ("may include    unchanged rows: rows rewritten with identical values" in told) == is_told_by_ids
    assert (plan.before is None) == (changes.before is None)
    assert (None if plan.before is None else asdict(plan.before)) == changes.details["before"]
    after = Cost(changes.files, changes.rows, changes.bytes)
    assert plan.to_read == Cost.total([after, *([plan.before] if plan.before else [])])
    assert [asdict(part) for part in plan.partitions or ()] == changes.partitions
    assert plan.upto is not None
    assert plan.upto.is_at(changes.tables[place.lake.name(source.name)].upto)


def test_the_sizes_are_those_of_the_touched_files(place: Place) -> None:
    source = changed(place, properties=COPY_ON_WRITE)
    plan = planned(source, changes="before_after")
    first, last = measured(source, source.snapshots[2]), measured(source, source.head)
    assert plan.before == Cost(1, 5, sum(first[path] for path in first.keys() - last.keys()))
    added = [last[path] for path in last.keys() - first.keys()]
    assert plan.to_read == Cost(3, 11, sum(added) + (plan.before.bytes or 0))


def test_what_is_refused_without_being_asked_for(place: Place) -> None:
    source = changed(place)
    plan = planned(source)
    assert plan.refusal is not None
    assert plan.refusal["code"] == "UnsupportedChange"
    assert plan.snapshots == {"append: captured": 1, "overwrite: refused": 1}
    assert (plan.exact, plan.to_read) == (None, None)
    allowed = planned(source, changes="added", operations=["append", "overwrite"])
    assert (allowed.refusal, allowed.exact) == (None, False)
    assert "NOT EXACT" in plan_text.plans([allowed])
    assert allowed.lateness is None, "an update says nothing about when its rows arrived"


def test_a_rollback(place: Place) -> None:
    source = changed(place)
    place.call(f"rollback_to_snapshot('{source.name}', {source.snapshots[0]})")
    assert (planned(source).refusal or {})["code"] == "HistoryLost"
    plan = planned(source, changes="before_after")
    assert (plan.refusal, plan.to_read) == (None, plan.before)
    assert plan.before is not None
    assert plan.before.rows == 10
    assert "unknown: no line of snapshots leads to here" in plan_text.plans([plan])


def test_up_to_a_snapshot(place: Place) -> None:
    source = changed(place)
    plan = planned(source, "d", start=str(source.snapshots[0]), upto=str(source.snapshots[1]))
    assert plan.upto is not None
    assert plan.upto.snapshot_id == source.snapshots[1]
    assert plan.to_read is not None
    assert (plan.to_read.files, plan.to_read.rows) == (1, 5)


def test_a_view(place: Place) -> None:
    source = changed(place)
    assert (planned(source, mode="view").refusal or {})["code"] == "UnsupportedChange"
    plan = planned(source, "d", mode="view", start="full")
    assert (plan.refusal, plan.mode) == (None, Mode.VIEW)
    assert "view: no change table would be made" in plan_text.plans([plan])
    source.sql("alter table {t} add column more int")
    assert (planned(source, "d", mode="view", start="full").refusal or {})["code"] == "UnsupportedTable"


def test_nothing_is_made(place: Place) -> None:
    source = changed(place)
    before = source.metadata["last-updated-ms"], source.metadata["refs"]
    planned(source, changes="keys", keys=["id"])
    planned(source, "nobody", changes="before_after")
    assert (source.metadata["last-updated-ms"], source.metadata["refs"]) == before
    assert place.lake.store.pending("c", place.lake.name(source.name)) is None


def test_a_key_that_is_no_column(place: Place) -> None:
    with pytest.raises(UnknownName, match="There is no column 'ids'"):
        planned(changed(place), changes="keys", keys=["ids"])
