"""Both ends of a range: whatever was done to a table, the rows told changed are exactly those that differ."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from dalsegno import Changes
from dalsegno.errors import HistoryLost, UnsupportedChange, UserError
from tests.iceberg.support import COPY_ON_WRITE, MERGE_ON_READ, Place, Rows, Source, duckdb_rows, numbered

pytestmark = pytest.mark.spark

KINDS = [
    pytest.param(1, COPY_ON_WRITE, id="v1"),
    pytest.param(2, COPY_ON_WRITE, id="v2-copy-on-write"),
    pytest.param(2, MERGE_ON_READ, id="v2-merge-on-read"),
    pytest.param(3, COPY_ON_WRITE, id="v3-copy-on-write"),
    pytest.param(3, MERGE_ON_READ, id="v3-merge-on-read"),
]


@dataclass(frozen=True)
class Told:
    """The rows of a capture by what happened to them."""

    by_type: dict[str, Rows]

    @classmethod
    def by(cls, place: Place, changes: Changes) -> Told:
        found: dict[str, Rows] = {}
        for row, times in place.spark_rows(changes.query("spark")).items():
            found.setdefault(row[-1], Counter())[row[:-1]] += times
        return cls(found)

    @property
    def added(self) -> Rows:
        return self.by_type.get("insert", Counter()) + self.by_type.get("update_after", Counter())

    @property
    def removed(self) -> Rows:
        return self.by_type.get("delete", Counter()) + self.by_type.get("update_before", Counter())


def begun(place: Place, version: int, modes: dict[str, str]) -> Source:
    """A table of three days that a consumer has processed."""
    source = place.table("id bigint, day string, v int", partitioned="day", version=version, properties=modes)
    source.insert(*(f"{number}, 'd{number % 3}', {number}" for number in range(12)))
    source.insert(*(f"{number}, 'd{number % 3}', {number}" for number in range(12, 24)))
    source.capture(start="latest", changes="before_after", keys=["id"])
    return source


def told(source: Source) -> Told:
    """Capture both ends, read what changed, and commit."""
    changes = source.capture(changes="before_after", keys=["id"])
    if not changes:
        return Told({})
    assert changes.details["exact"] is True
    found = Told.by(source.place, changes)
    assert changes.commit().left_over == ()
    return found


@pytest.mark.parametrize(("version", "modes"), KINDS)
def test_every_operation_in_one_range(place: Place, version: int, modes: dict[str, str]) -> None:
    source = begun(place, version, modes)
    source.sql(
        "update {t} set v = v + 100 where id in (1, 2)",
        "delete from {t} where id = 3",
        "delete from {t} where day = 'd2' and id > 20",
        "merge into {t} t using (select 4 as id, 'd1' as day, 400 as v union all select 50, 'd5', 50) s "
        "on t.id = s.id when matched then update set v = s.v when not matched then insert *",
    )
    source.insert("60, 'd6', 60")
    found = told(source)
    assert found.by_type == {
        "update_before": Counter([(1, "d1", 1), (2, "d2", 2), (4, "d1", 4)]),
        "update_after": Counter([(1, "d1", 101), (2, "d2", 102), (4, "d1", 400)]),
        "delete": Counter([(3, "d0", 3), (23, "d2", 23)]),
        "insert": Counter([(50, "d5", 50), (60, "d6", 60)]),
    }
    assert told(source).by_type == {}


STEPS = {
    "append": "insert into {t} (id, day, v) select id + 1000 * rand_a, concat('d', id % 4), 7 from range(rand_b)",
    "update": "update {t} set v = v + 100 where id % 7 = rand_b",
    "delete": "delete from {t} where id % 11 = rand_b",
    "delete a day": "delete from {t} where day = concat('d', rand_b % 4)",
    "merge": "merge into {t} t using (select id * 3 as id, 'd1' as day, 777 as v from range(rand_b)) s on t.id = s.id "
    "when matched and t.id % 2 = 0 then delete when matched then update set v = s.v "
    "when not matched then insert (id, day, v) values (s.id, s.day, s.v)",
    "overwrite": "insert overwrite {t} partition (day = 'd3') (id, v) values (rand_a, 5)",
    "compact": "call {c}.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))",
    "rewrite manifests": "call {c}.system.rewrite_manifests('{n}')",
    "add a column": "alter table {t} add column extra_rand_a int",
    "change the spec": "alter table {t} add partition field bucket(rand_a, id) as b_rand_a",
    "roll back": "roll back",
}


def step(source: Source, name: str, chance: random.Random) -> None:
    if name == "roll back":
        line = source.place.sql(
            f"select snapshot_id from {source.full}.history where is_current_ancestor order by made_current_at desc"
        )
        chosen = chance.choice(line[:3])[0]
        source.place.call(f"rollback_to_snapshot('{source.name}', {chosen})")
        return
    statement = STEPS[name].replace("{c}", source.place.catalog).replace("{n}", source.name)
    statement = statement.replace("rand_a", str(chance.randint(1, 10**6))).replace("rand_b", str(chance.randint(0, 6)))
    source.sql(statement)


@pytest.mark.parametrize(("version", "modes"), KINDS)
@pytest.mark.parametrize("seed", [1])
def test_random_histories(place: Place, version: int, modes: dict[str, str], seed: int) -> None:
    chance = random.Random(f"{seed} {version} {sorted(modes.values())}")
    source = begun(place, version, modes)
    before = source.rows("select id, day, v from {t}")
    for _ in range(4):
        names = chance.choices(list(STEPS), k=chance.randint(1, 4))
        for name in names:
            step(source, name, chance)
        found, after = told(source), source.rows("select id, day, v from {t}")
        shortened = [Counter(row[:3] for row in side.elements()) for side in (found.added, found.removed)]
        assert (shortened[0] - shortened[1], shortened[1] - shortened[0]) == (after - before, before - after), names
        before = after


def test_without_keys_an_update_is_a_delete_and_an_insert(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.sql("update {t} set v = 0 where id = 5")
    changes = source.capture(operations=["append", "overwrite"])
    assert Told.by(place, changes).by_type == {"insert": Counter([(5, "d2", 0)]), "delete": Counter([(5, "d2", 5)])}


@pytest.mark.parametrize(("version", "modes"), KINDS)
def test_upserts_keys_and_ranges(place: Place, version: int, modes: dict[str, str]) -> None:
    source = begun(place, version, modes)
    for consumer in ("upserts", "keys", "range"):
        source.capture(consumer=consumer, start="latest", changes=consumer, keys=["id"])
    source.sql("update {t} set v = 100 where id = 4", "delete from {t} where id = 5")
    source.insert("70, 'd7', 70")
    upserts = source.capture(consumer="upserts", changes="upserts", keys=["id"])
    # On version 3 nothing is compared: the ids of rows tell.
    assert (upserts.before is None) == (version == 3)
    found = Counter(row[:3] for row in place.spark_rows(upserts.query()).elements())
    assert found == Counter([(4, "d1", 100), (70, "d7", 70)])
    keys = source.capture(consumer="keys", changes="keys", keys=["id"])
    assert place.spark_rows(keys.query()) == numbered(4, 5, 70)
    ranges = source.capture(consumer="range", changes="range", keys=["id"], ranges=["day"], partitions=True)
    assert (ranges.ranges["day"]["min"], ranges.ranges["day"]["max"]) == ("d1", "d7")
    assert {part["values"]["day"] for part in ranges.partitions or ()} == {"d1", "d2", "d7"}


def test_a_row_that_came_back_by_a_rollback_is_an_upsert(place: Place) -> None:
    """It is older than the checkpoint, so its id alone would not tell."""
    source = begun(place, 3, MERGE_ON_READ)
    kept = place.sql(f"select snapshot_id from {source.full}.history order by made_current_at desc limit 1")[0][0]
    source.sql("delete from {t} where id = 5")
    assert told(source).removed == Counter([(5, "d2", 5)])
    place.call(f"rollback_to_snapshot('{source.name}', {kept})")
    changes = source.capture(changes="upserts", keys=["id"])
    assert Counter(row[:3] for row in place.spark_rows(changes.query()).elements()) == Counter([(5, "d2", 5)])


@pytest.mark.parametrize("modes", [COPY_ON_WRITE, MERGE_ON_READ], ids=["copy-on-write", "merge-on-read"])
def test_another_engine_tells_the_same(place: Place, modes: dict[str, str]) -> None:
    source = begun(place, 2, modes)
    source.sql("update {t} set v = 100 where id = 4", "delete from {t} where id = 5")
    changes = source.capture(changes="before_after", keys=["id"])
    assert duckdb_rows(changes.query("duckdb")) == place.spark_rows(changes.query("spark"))


def test_rows_that_are_alike_are_counted(place: Place) -> None:
    source = place.table("id int")
    source.insert("1", "1", "1", "2")
    source.capture(start="latest", changes="before_after")
    source.sql("insert overwrite {t} values (1), (2), (2)")
    found = Told.by(place, source.capture(changes="before_after"))
    assert found.by_type == {"insert": numbered(2), "delete": numbered(1, 1)}


def test_a_target_of_merge_is_captured_in_turn(place: Place) -> None:
    """Stage two of a pipeline: the table that stage one merges into is itself a source."""
    source = begun(place, 2, MERGE_ON_READ)
    source.capture(consumer="stage-two", start="latest", changes="before_after")
    for value in (1, 2):
        source.sql(
            f"merge into {{t}} t using (select 7 as id, 'd1' as day, {value} as v) s on t.id = s.id "
            "when matched then update set v = s.v when not matched then insert *"
        )
    found = Told.by(place, source.capture(consumer="stage-two", changes="before_after"))
    assert (found.added, found.removed) == (Counter([(7, "d1", 2)]), Counter([(7, "d1", 7)]))


def test_operations_that_were_not_named_are_refused(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.sql("delete from {t} where day = 'd1'")
    with pytest.raises(UnsupportedChange, match="is of kind 'delete'"):
        source.capture(changes="before_after", operations=["append", "overwrite"])
    assert place.lake.store.pending("c", place.lake.name(source.name)) is None


def test_added_files_of_an_overwrite_are_said_not_to_be_exact(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.sql("update {t} set v = 0 where id = 5")
    changes = source.capture(changes="added", operations=["append", "overwrite"])
    assert changes.details["exact"] is False
    assert "ask for before_after" in changes.details["inexact_because"]
    assert (5, "d2", 0) in place.rows_of(changes)


def test_a_checkpoint_that_expired_is_refused(unpinned: Place) -> None:
    source = begun(unpinned, 2, COPY_ON_WRITE)
    source.sql("update {t} set v = 0 where id = 5", "update {t} set v = 1 where id = 5")
    unpinned.call(f"expire_snapshots(table => '{source.name}', older_than => timestamp '2100-01-01', retain_last => 1)")
    with pytest.raises(HistoryLost):
        source.capture(changes="before_after")


def test_what_a_rollback_left_aside_is_held(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    first = place.sql(f"select snapshot_id from {source.full}.history order by made_current_at limit 1")[0][0]
    place.call(f"rollback_to_snapshot('{source.name}', {first})")
    source.insert("99, 'd9', 99")
    changes = source.capture(changes="before_after")
    place.call(f"expire_snapshots(table => '{source.name}', older_than => timestamp '2100-01-01', retain_last => 1)")
    found = Told.by(place, changes)
    assert found.added == Counter([(99, "d9", 99)])
    assert found.removed == Counter((number, f"d{number % 3}", number) for number in range(12, 24))


def test_a_pending_capture_of_another_kind_is_not_handed_out(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.insert("99, 'd9', 99")
    made = source.capture(changes="before_after")
    with pytest.raises(Exception, match=f"has another capture pending, {made.id}"):
        source.capture()


def test_words_that_mean_nothing(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    with pytest.raises(
        UserError, match="'all' is no kind of changes: expected added, before_after, upserts, keys, range"
    ):
        source.capture(changes="all")
    with pytest.raises(UserError, match="'upsert' is no operation"):
        source.capture(operations=["upsert"])
    with pytest.raises(UserError, match="needs to know the keys"):
        source.capture(changes="keys")
