"""Both ends of a range: whatever was done to a table, the rows told changed are exactly those that differ."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from dalsegno import Changes
from dalsegno.errors import HistoryLost, UnsupportedChange, UserError
from dalsegno.iceberg import pins
from dalsegno.iceberg.history import history_of
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
        assert shortened == [after - before, before - after], names
        before = after


COMPACT = "rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))"


@pytest.mark.parametrize(("version", "modes"), KINDS)
def test_what_compaction_only_swapped_is_not_read(place: Place, version: int, modes: dict[str, str]) -> None:
    source = begun(place, version, modes)
    place.call(COMPACT.replace("{n}", source.name))
    source.insert("99, 'd9', 99")
    changes = source.capture(changes="before_after", keys=["id"])
    assert (changes.files, changes.details["before"]["files"]) == (1, 0)
    assert Told.by(place, changes).by_type == {"insert": Counter([(99, "d9", 99)])}


@pytest.mark.parametrize("is_first", [True, False], ids=["merge-first", "compaction-first"])
def test_a_compaction_is_read_where_something_changed_too(place: Place, is_first: bool) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    compact = f"call {place.catalog}.system.{COMPACT.replace('{n}', source.name)}"
    steps = ["update {t} set v = 0 where id = 5", compact]
    source.sql(*(steps if is_first else reversed(steps)))
    changes = source.capture(changes="before_after", keys=["id"])
    assert {part["values"]["day"] for part in changes.partitions or ()} == {"d2"}
    found = Told.by(place, changes)
    assert (found.added, found.removed) == (Counter([(5, "d2", 0)]), Counter([(5, "d2", 5)]))


def test_without_keys_an_update_is_a_delete_and_an_insert(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.sql("update {t} set v = 0 where id = 5")
    changes = source.capture(operations=["append", "overwrite"])
    assert Told.by(place, changes).by_type == {"insert": Counter([(5, "d2", 0)]), "delete": Counter([(5, "d2", 5)])}


@pytest.mark.parametrize(("version", "modes"), KINDS)
def test_a_key_means_the_same_whatever_the_format_and_the_way(
    place: Place, version: int, modes: dict[str, str]
) -> None:
    """Version 3 knows rows by their ids as well, but what was asked for are keys."""
    source = begun(place, version, modes)
    source.capture(consumer="keys", start="latest", changes="keys", keys=["id"])
    # Written anew: with another value, and as it was. Updated: away from its key, and to what it was.
    source.sql("delete from {t} where id in (1, 2)")
    source.insert("1, 'd1', 100", "2, 'd2', 2")
    source.sql("update {t} set id = 300 where id = 3", "update {t} set v = v + 1 where id = 4")
    source.sql("update {t} set v = v - 1 where id = 4")
    keys = source.capture(consumer="keys", changes="keys", keys=["id"])
    assert place.spark_rows(keys.query()) == numbered(1, 3, 300)
    changes = source.capture(changes="before_after", keys=["id"])
    assert Told.by(place, changes).by_type == {
        "update_before": Counter([(1, "d1", 1)]),
        "update_after": Counter([(1, "d1", 100)]),
        "delete": Counter([(3, "d0", 3)]),
        "insert": Counter([(300, "d0", 3)]),
    }
    assert duckdb_rows(changes.query("duckdb")) == place.spark_rows(changes.query("spark"))


FOLLOW = """merge into {t} t using (select * from changes where _change_type <> 'update_before') c on t.id = c.id
when matched and c._change_type = 'delete' then delete
when matched then update set day = c.day, v = c.v
when not matched and c._change_type <> 'delete' then insert (id, day, v) values (c.id, c.day, c.v)"""
COMPUTE_AGAIN = """merge into {t} t using (
  select k.day, sum(s.v) as total, count(s.id) = 0 as gone
  from (select distinct day from changes) k left join {source} s on s.day = k.day group by k.day
) c on t.day = c.day
when matched and c.gone then delete
when matched then update set total = c.total
when not matched and not c.gone then insert (day, total) values (c.day, c.total)"""


@pytest.mark.parametrize(
    ("version", "modes"),
    [pytest.param(2, COPY_ON_WRITE, id="v2-copy-on-write"), pytest.param(3, MERGE_ON_READ, id="v3-merge-on-read")],
)
def test_what_is_built_from_changes_follows(place: Place, version: int, modes: dict[str, str]) -> None:
    """A copy, and groups: those that lost rows, those that lost all, and both of an update from one to another."""
    source = begun(place, version, modes)
    copy, groups = place.table("id bigint, day string, v int"), place.table("day string, total bigint")
    copy.sql(f"insert into {{t}} select * from {source.full}")
    groups.sql(f"insert into {{t}} select day, sum(v) from {source.full} group by day")
    written_anew = ["delete from {t} where id = 1", "insert into {t} values (1, 'd1', 100), (90, 'd9', 90)"]
    moved_and_gone = ["update {t} set day = 'd2' where id = 4", "delete from {t} where day = 'd0' or id = 90"]
    overwritten = ["insert overwrite {t} partition (day = 'd1') (id, v) values (7, 7), (10, 0), (91, 91)"]
    for statements in (written_anew, moved_and_gone, overwritten):
        source.sql(*statements)
        changes = source.capture(changes="before_after", keys=["id"])
        place.spark.sql(changes.query()).createOrReplaceTempView("changes")
        copy.sql(FOLLOW)
        groups.sql(COMPUTE_AGAIN.replace("{source}", source.full))
        changes.commit()
        assert copy.rows() == source.rows(), statements
        assert groups.rows() == source.rows("select day, sum(v) from {t} group by day"), statements


def test_without_keys_a_row_is_known_by_its_id_if_it_has_one(place: Place) -> None:
    source = begun(place, 3, MERGE_ON_READ)
    source.sql("update {t} set id = 300 where id = 3", "update {t} set v = v + 1 where id = 4")
    source.sql("update {t} set v = v - 1 where id = 4", "delete from {t} where id = 5")
    source.insert("5, 'd2', 5")
    changes = source.capture(operations=["append", "overwrite", "delete"])
    assert "a delete and an insert" in changes.details["may_be_more"]
    assert Told.by(place, changes).by_type == {
        "update_before": Counter([(3, "d0", 3)]),
        "update_after": Counter([(300, "d0", 3)]),
        "delete": Counter([(5, "d2", 5)]),
        "insert": Counter([(5, "d2", 5)]),
    }


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
    assert (upserts.details["may_be_more"] is not None) == (version == 3)
    found = Counter(row[:3] for row in place.spark_rows(upserts.query()).elements())
    assert found == Counter([(4, "d1", 100), (70, "d7", 70)])
    keys = source.capture(consumer="keys", changes="keys", keys=["id"])
    assert place.spark_rows(keys.query()) == numbered(4, 5, 70)
    assert keys.details["may_be_more"] is None
    ranges = source.capture(consumer="range", changes="range", keys=["id"], ranges=["day"], partitions=True)
    assert (ranges.ranges["day"]["min"], ranges.ranges["day"]["max"]) == ("d1", "d7")
    assert {part["values"]["day"] for part in ranges.partitions or ()} == {"d1", "d2", "d7"}
    assert "of whole files" in ranges.details["may_be_more"]


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


@pytest.mark.parametrize(
    ("kind", "value", "wider"), [("decimal(5, 2)", "1.25", "decimal(20, 2)"), ("float", "float('nan')", "double")]
)
def test_deletes_of_a_partition_whose_value_is_written_in_another_way(
    place: Place, kind: str, value: str, wider: str
) -> None:
    """A widened decimal takes more bytes, and "not a number" is not equal to itself: still the same partition."""
    per_partition = MERGE_ON_READ | {"write.delete.granularity": "partition"}
    source = place.table(f"id int, p {kind}", partitioned="p", properties=per_partition)
    for number in (1, 4):
        source.insert(*(f"{number + more}, {value}" for more in range(3)))
    source.capture(start="latest", changes="before_after")
    source.sql(f"alter table {{t}} alter column p type {wider}", "delete from {t} where id in (1, 4)")
    found = Told.by(place, source.capture(changes="before_after"))
    assert {kind: {row[0] for row in rows} for kind, rows in found.by_type.items()} == {"delete": {1, 4}}


def test_rows_that_are_alike_are_counted(place: Place) -> None:
    source = place.table("id int")
    source.insert("1", "1", "1", "2")
    source.capture(start="latest", changes="before_after")
    source.sql("insert overwrite {t} values (1), (2), (2)")
    found = Told.by(place, source.capture(changes="before_after"))
    assert found.by_type == {"insert": numbered(2), "delete": numbered(1, 1)}


@pytest.mark.parametrize("version", [2, 3])
def test_values_that_are_hard_to_compare(place: Place, version: int) -> None:
    """NULL keys, NULL and NaN values, structs, arrays, and maps at any depth, whose entries have no order."""
    source = place.table(
        "id int, d double, s struct<a: int, m: map<string, int>>, l array<double>, m map<string, int>",
        version=version,
        properties=COPY_ON_WRITE,
    )
    nan = "cast('NaN' as double)"
    same = f"{nan}, named_struct('a', null, 'm', map('x', 1, 'y', 2)), array({nan}, null), map('k', 1, 'l', null)"
    turned = f"{nan}, named_struct('a', null, 'm', map('y', 2, 'x', 1)), array({nan}, null), map('l', null, 'k', 1)"
    other = f"{nan}, named_struct('a', null, 'm', map('x', 1, 'y', 3)), array({nan}, null), map('k', 1, 'l', null)"
    nothing = "null, null, null, null"
    source.insert(f"1, {same}", f"1, {same}", f"2, {same}", f"null, {same}", f"3, {nothing}")
    source.capture(start="latest", changes="before_after", keys=["id"])
    source.sql(
        f"insert overwrite {{t}} values (1, {same}), (2, {other}), (null, {nothing}), (3, {nothing}), (4, {turned})"
    )
    source.sql(
        "update {t} set m = map('l', null, 'k', 1), s = named_struct('a', null, 'm', map('y', 2, 'x', 1)) where id = 1"
    )
    changes = source.capture(changes="before_after", keys=["id"])
    found = place.spark.sql(changes.query()).selectExpr("id", "s.m['y'] as y", "m['k'] as k", "_change_type").collect()
    told = Counter(tuple(row) for row in found)
    assert told == Counter(
        [
            (1, 2, 1, "delete"),
            (2, 2, 1, "update_before"),
            (2, 3, 1, "update_after"),
            (None, 2, 1, "update_before"),
            (None, None, None, "update_after"),
            (4, 2, 1, "insert"),
        ]
    )


def test_values_that_cannot_be_compared(place: Place) -> None:
    """Row ids tell what changed all the same; where there are none, the query is refused."""
    source = place.table("id int, v variant", version=3, properties=MERGE_ON_READ)
    source.sql("insert into {t} select id, parse_json('{\"a\": 1}') from range(4)")
    begin = source.head
    source.capture(start="latest", changes="before_after", keys=["id"])
    source.sql("update {t} set v = parse_json('2') where id = 1", "delete from {t} where id = 2")
    changes = source.capture(changes="before_after", keys=["id"])
    expected = [(1, "2", "update_after"), (1, '{"a":1}', "update_before"), (2, '{"a":1}', "delete")]
    for query in (changes.query(), f"select * from {changes.changes_view}"):
        found = place.spark.sql(query).selectExpr("id", "to_json(v)", "_change_type").collect()
        assert sorted(tuple(row) for row in found) == expected
    with pytest.raises(UserError, match=r"Column 'v' of .* cannot be compared") as refused:
        changes.query("duckdb")
    assert "Query with Spark" in str(refused.value.hint)
    changes.commit()
    place.call(f"rollback_to_snapshot('{source.name}', {begin})")
    changes = source.capture(changes="before_after", keys=["id"])
    assert changes.changes_view is None
    assert "no row ids to go by" in changes.details["no_changes_view_because"]
    with pytest.raises(UserError, match="no row ids to go by") as refused:
        changes.query()
    assert "--changes range --partitions" in str(refused.value.hint)


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
    with pytest.raises(
        UnsupportedChange, match=r"was not expected: .* is of kind 'delete'; expected only append, over"
    ):
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
    history = history_of(source.metadata, "main", table=place.lake.name(source.name))
    held, _ = pins.held(place.lake.load(place.lake.name(source.name)), history, "c")
    assert {changes.tables[place.lake.name(source.name)].after.snapshot_id, source.head} <= held
    changes.commit()
    assert not [name for name in source.metadata["refs"] if name.endswith(":aside")]


def test_operations_cannot_be_told_after_a_rollback(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    first = place.sql(f"select snapshot_id from {source.full}.history order by made_current_at limit 1")[0][0]
    place.call(f"rollback_to_snapshot('{source.name}', {first})")
    with pytest.raises(
        UnsupportedChange, match=r"was rolled back, or lost .* expected only append, overwrite, but which"
    ):
        source.capture(changes="before_after", operations=["append", "overwrite"])
    assert told(source).removed.total() == 12


def test_a_table_that_began_with_create_or_replace_is_captured_from_its_beginning(place: Place) -> None:
    """Its first snapshot calls itself an overwrite, but there was nothing to overwrite."""
    source = place.table("id int")
    source.insert("0")
    source.sql("create or replace table {t} using iceberg as select 1 as id")
    assert source.operations[-1] == "overwrite"
    source.insert("2")
    changes = source.capture(start="earliest")
    assert (place.rows_of(changes), changes.details["exact"]) == (numbered(1, 2), True)
    changes.commit()
    source.sql("create or replace table {t} using iceberg as select 3 as id")
    with pytest.raises(HistoryLost, match="was replaced"):
        source.capture()


def test_a_first_capture_that_was_given_up_is_taken_again(place: Place) -> None:
    source = place.table("id int")
    for number in (1, 2, 3):
        source.insert(str(number))
    source.capture(start=str(source.snapshots[0])).abandon()
    assert place.lake.plan(source.name, consumer="c")[0].snapshots == {"append: captured": 2}
    assert source.taken() == numbered(2, 3)


def test_a_pending_capture_of_another_kind_is_not_handed_out(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    source.insert("99, 'd9', 99")
    made = source.capture(changes="before_after")
    with pytest.raises(Exception, match=f"has another capture pending, {made.id}"):
        source.capture()


def test_words_that_mean_nothing(place: Place) -> None:
    source = begun(place, 2, COPY_ON_WRITE)
    with pytest.raises(
        UserError, match="'all' is not a known kind of changes: expected added, before_after, upserts, keys, range"
    ):
        source.capture(changes="all")
    with pytest.raises(UserError, match="'upsert' is not a known operation"):
        source.capture(operations=["upsert"])
    with pytest.raises(UserError, match="needs to know the keys"):
        source.capture(changes="keys")
