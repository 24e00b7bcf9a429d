"""What strategies cost, by metadata alone, and which of them is taken. No Spark: its answers are given."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.errors import UserError
from dalsegno.iceberg.sizes import TableSizes
from dalsegno.model.captures import Capture
from dalsegno.model.refreshes import Cost
from dalsegno.plan.refresh_costs import PastCost
from dalsegno.rewrite.strategy import Strategy, StrategyName
from dalsegno.settings import CatalogSettings
from dalsegno.steps.declared.deciding import Costs
from dalsegno.steps.declared.params import Policy, declared_table
from dalsegno.steps.declared.refreshing import Declared, Refresh
from dalsegno.steps.declared.sources import sources_of
from tests.steps.support import attempt

DAYS = [date(2026, 1, 1) + timedelta(days=number) for number in range(20)]
PLAYS = pa.schema(
    [("id", pa.int64()), ("title", pa.int64()), ("seconds", pa.int64()), ("noise", pa.string()), ("day", pa.date32())]
)
DAILY = "SELECT day, sum(seconds) AS seconds, count(*) AS n FROM lake.db.plays GROUP BY day"
BY_TITLE = "SELECT title, sum(seconds) AS seconds, max(id) AS newest FROM lake.db.plays GROUP BY title"
TYPES = {"day": "date", "n": "bigint", "title": "bigint", "seconds": "bigint", "newest": "bigint", "id": "bigint"}
#: As of a table in memory: 1 s, 10 MB/s read, 5 MB/s written.
SLOW = [Cost(read, written, 1 + read * 1e-7 + written * 2e-7) for read, written in [(9_000_000, 10), (10, 9_000_000)]]


class Media:
    """A source, its declared tables, and captures of it."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.root = lake, lake.settings.root
        self.tables = lake.catalog("lake").pyiceberg
        self.tables.create_namespace("db")
        with self.tables.create_table("db.plays", PLAYS).update_spec() as spec:
            spec.add_identity("day")

    def play(self, *days: date, rows: int = 200, replace_all: bool = False, first: int | None = 0) -> None:
        """``first``: of the seconds; None: they are not known."""
        chance = random.Random(rows)
        noise = [chance.randbytes(32).hex() for _ in range(rows)]
        values = [range(rows), [number % 50 for number in range(rows)], self._seconds(first, rows), noise]
        columns = [list(column) * len(days) for column in values] + [[day for day in days for _ in range(rows)]]
        table, found = self.tables.load_table("db.plays"), pa.table(columns, schema=PLAYS)
        (table.overwrite if replace_all else table.append)(found)

    @staticmethod
    def _seconds(first: int | None, rows: int) -> list[int | None]:
        return [None] * rows if first is None else list(range(first, first + rows))

    def target(self, schema: pa.Schema, rows: pa.Table | None = None, partition: str | None = "day") -> None:
        table = self.tables.create_table("db.target", schema)
        if partition:
            with table.update_spec() as spec:
                spec.add_identity(partition)
        if rows is not None:
            self.tables.load_table("db.target").append(rows)

    def capture(self, *ranges: str) -> Capture:
        changes = self.lake.capture(
            "lake.db.plays", consumer="c", changes="before_after", partitions=True, ranges=ranges
        )
        assert changes.capture is not None
        return changes.capture

    def declared(self, query: str, **options: object) -> Declared:
        block = {"target": "lake.db.target", "query": query}
        block |= {name: str(value).replace(" ", "_") for name, value in options.items()}
        table = declared_table(attempt(self.root, {"incremental": block}))
        names = [field.name for field in self.tables.load_table("db.target").schema().fields]

        def described(_: str) -> Mapping[str, str]:
            return {each: TYPES[each] for each in names}

        return Declared.of(self.lake, table, sources_of(self.lake, query), described, {})

    def refresh(
        self, query: str, capture: Capture, past: Sequence[Cost], *, has_rows: bool = False, **options: object
    ) -> Refresh:
        declared = self.declared(query, **options)
        return declared.refresh(capture, is_rebuild=False, has_rows=lambda _: has_rows, past=past)


@pytest.fixture
def media(tmp_path: Path) -> Iterator[Media]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as lake:
        made = Media(lake)
        made.play(*DAYS)
        lake.set_checkpoint("lake.db.plays", consumer="c", to="latest")
        yield made


DAILY_COLUMNS = pa.schema([("day", pa.date32()), ("seconds", pa.int64()), ("n", pa.int64())])
TITLE_COLUMNS = pa.schema([("title", pa.int64()), ("seconds", pa.int64()), ("newest", pa.int64())])


def daily(days: list[date], copies: int = 1) -> pa.Table:
    rows = [day for day in days for _ in range(copies)]
    return pa.table([rows, list(range(len(rows))), list(range(len(rows)))], schema=DAILY_COLUMNS)


def by_name(refresh: Refresh) -> dict[str, Cost]:
    return {each.strategy: each.expected for each in refresh.considered if each.expected is not None}


def total(media: Media, table: str) -> int:
    snapshot = media.tables.load_table(table).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    return int(snapshot.summary["total-files-size"] or 0)


def size_of(media: Media, table: str, *days: date) -> int:
    files = media.tables.load_table(table).inspect.files().to_pylist()
    return sum(each["file_size_in_bytes"] for each in files if each["partition"]["day"] in days)


def test_bytes_are_those_of_the_files(media: Media) -> None:
    media.target(DAILY_COLUMNS, daily(DAYS))
    new = date(2026, 6, 1)
    added = total(media, "db.plays")
    media.play(DAYS[3], DAYS[7], new)
    added = total(media, "db.plays") - added
    refresh = media.refresh(DAILY, media.capture(), [])
    found = by_name(refresh)
    touched = size_of(media, "db.plays", DAYS[3], DAYS[7], new)
    target = size_of(media, "db.target", DAYS[3], DAYS[7])
    assert found["full"] == Cost(total(media, "db.plays"), total(media, "db.target"))
    assert found["touched partitions"].bytes_read == touched
    # The new day makes as much of the target as the others.
    assert target <= found["touched partitions"].bytes_written <= target * 2
    assert found["delta"].bytes_read == added + target
    # A MERGE reads its source twice: first to find the files of the target.
    assert found["touched keys"].bytes_read == 2 * (added + touched + target)
    assert refresh.strategy is StrategyName.DELTA
    assert "append" not in found


def test_without_past_costs_it_stays_incremental(media: Media) -> None:
    media.target(DAILY_COLUMNS, daily(DAYS))
    media.play(*DAYS)
    refresh = media.refresh(DAILY, media.capture(), [])
    assert refresh.strategy is StrategyName.DELTA
    assert "full would read" in refresh.why
    assert refresh.expected is not None and refresh.expected.seconds is None


def test_full_is_taken_where_it_is_clearly_cheaper(media: Media) -> None:
    """Every row was written anew: finding the touched keys takes longer than computing all of them."""
    titles = pa.table([list(range(50)), list(range(50)), list(range(50))], schema=TITLE_COLUMNS)
    media.target(TITLE_COLUMNS, titles, partition=None)
    media.play(*DAYS[:5], rows=8_000, replace_all=True)
    capture = media.capture()
    refresh = media.refresh(BY_TITLE, capture, [])
    assert refresh.strategy is StrategyName.KEYS
    # It was tried, and takes as long as its bytes say.
    tried = [PastCost(each.bytes_read, each.bytes_written, each.seconds, "touched keys") for each in SLOW]
    refresh = media.refresh(BY_TITLE, capture, tried)
    assert refresh.strategy is StrategyName.FULL
    assert "A full refresh is expected to be cheaper: it reads" in refresh.why
    assert "touched keys would read" in refresh.why
    assert refresh.expected == by_name(refresh)["full"]
    # The same question has the same answer.
    assert media.refresh(BY_TITLE, capture, tried) == refresh
    assert media.refresh(BY_TITLE, capture, tried, policy=Policy.STRICT).strategy is StrategyName.KEYS
    assert media.refresh(BY_TITLE, capture, tried, strategy=StrategyName.KEYS).strategy is StrategyName.KEYS
    assert media.refresh(BY_TITLE, capture, [], policy=Policy.FULL).strategy is StrategyName.FULL


def test_a_strategy_gets_the_benefit_of_the_doubt_once() -> None:
    """Nobody knows how long touched keys take until they were taken once."""
    strategies = [Strategy(name, "", _write=lambda _: []) for name in (StrategyName.KEYS, StrategyName.FULL)]
    costs = {StrategyName.KEYS: Cost(0, 0, 15.0), StrategyName.FULL: Cost(0, 0, 10.0)}
    assert Costs(costs).ordered(strategies)[0].name is StrategyName.KEYS
    assert Costs(costs, frozenset({"full"})).ordered(strategies)[0].name is StrategyName.KEYS
    assert Costs(costs, frozenset({"touched keys"})).ordered(strategies)[0].name is StrategyName.FULL
    costs[StrategyName.KEYS] = Cost(0, 0, 25.0)
    assert Costs(costs).ordered(strategies)[0].name is StrategyName.FULL


def test_full_is_never_taken_where_an_increment_is_cheaper(media: Media) -> None:
    media.target(DAILY_COLUMNS, daily(DAYS, copies=100))
    media.play(DAYS[3])
    capture = media.capture()
    for past in ([], SLOW, SLOW[:1], SLOW[1:], [Cost(10**12, 0, 1000.0)], [Cost(100, 100, 0.001)]):
        refresh = media.refresh(DAILY, capture, past)
        assert refresh.strategy is not StrategyName.FULL
        costs = by_name(refresh)
        assert (costs[refresh.strategy].seconds or 0) <= (costs["full"].seconds or 0)


def test_if_a_probe_fails_the_next_cheapest_is_taken(media: Media) -> None:
    latest = LATEST.format("seconds")
    rows = pa.table([list(range(20)), list(range(20)), list(range(20)), DAYS], schema=LATEST_COLUMNS)
    media.target(LATEST_COLUMNS, rows)
    media.play(DAYS[3])
    capture = media.capture()
    assert media.refresh(latest, capture, SLOW).strategy is StrategyName.NEW_KEYS
    assert media.refresh(latest, capture, SLOW, has_rows=True).strategy is StrategyName.PARTITIONS
    with pytest.raises(UserError, match="append new keys is not possible: A probe"):
        media.refresh(latest, capture, SLOW, has_rows=True, strategy=StrategyName.NEW_KEYS)


LATEST = """SELECT id, title, seconds, day FROM (
  SELECT *, row_number() OVER (PARTITION BY id, day ORDER BY {}, noise) AS n FROM lake.db.plays) WHERE n = 1"""
LATEST_COLUMNS = pa.schema([("id", pa.int64()), ("title", pa.int64()), ("seconds", pa.int64()), ("day", pa.date32())])


@pytest.mark.parametrize(
    ("order", "first", "day", "is_later"),
    [
        ("seconds", 200, DAYS[3], True),
        ("seconds ASC NULLS FIRST", 200, DAYS[3], True),
        # The last one that was there.
        ("seconds", 199, DAYS[3], False),
        ("seconds", None, DAYS[3], False),
        ("seconds NULLS LAST", 200, DAYS[3], False),
        ("seconds DESC", 200, DAYS[3], False),
        ("seconds + 0", 200, DAYS[3], False),
        # Another day has larger ones.
        ("seconds", 500, DAYS[4], False),
        ("seconds", 500, DAYS[3], True),
        ("seconds", 1300, DAYS[4], True),
    ],
)
def test_rows_that_come_last_need_no_probe(
    media: Media, order: str, first: int | None, day: date, *, is_later: bool
) -> None:
    media.target(LATEST_COLUMNS)
    media.play(DAYS[4], first=1000)
    media.lake.set_checkpoint("lake.db.plays", consumer="c", to="latest", reprocess=True)
    media.play(day, first=first)
    asked: list[str] = []

    def has_rows(query: str) -> bool:
        asked.append(query)
        return False

    declared = media.declared(LATEST.format(order), strategy=StrategyName.NEW_KEYS)
    refresh = declared.refresh(media.capture("seconds"), is_rebuild=False, has_rows=has_rows, past=SLOW)
    assert (not asked) is is_later
    assert (refresh.statements[0].count("`target`") == 1) is is_later


def test_a_key_may_be_in_a_partition_of_another_name(media: Media) -> None:
    """Its day was there before, with another title: the partition is new, but not the key."""
    media.target(LATEST_COLUMNS)
    with media.tables.load_table("db.plays").update_spec() as spec:
        spec.add_identity("title")
    media.play(*DAYS, rows=10, replace_all=True)
    media.lake.set_checkpoint("lake.db.plays", consumer="c", to="latest", reprocess=True)
    media.tables.load_table("db.plays").append(pa.table([[0], [77], [0], [""], [DAYS[3]]], schema=PLAYS))
    capture = media.capture()
    assert [each["novelty"] for each in capture.tables[0].details["partitions"]] == ["new"]
    refresh = media.refresh(LATEST.format("seconds"), capture, [], strategy=StrategyName.NEW_KEYS)
    assert f"WHERE t.`day` = DATE'{DAYS[3]}'" in refresh.statements[0]


def test_ranges_leave_out_files_by_their_bounds(media: Media) -> None:
    orders = media.tables.create_table("db.orders", pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    for start in (0, 100, 200):
        rows = pa.table(
            [list(range(start, start + 100)), [DAYS[start // 100]] * 100], schema=orders.schema().as_arrow()
        )
        orders.append(rows)
    sizes = [each["file_size_in_bytes"] for each in orders.inspect.files().to_pylist()]
    loaded = media.lake.load(media.lake.name("lake.db.orders"))
    table = TableSizes(loaded, loaded.metadata["current-snapshot-id"])
    assert table.near("ID", [(150, 160)]) == table.near("day", [("2026-01-02", "2026-01-02")]) in sizes
    assert table.near("id", [(99, 100)]) + min(sizes) <= sum(sizes)
    assert table.near("id", [(1000, 2000)]) == 0
    assert table.near("id", [("a", "b")]) == table.near("nothing", [(1, 1)]) == sum(sizes)


def test_a_decision_is_quick(media: Media) -> None:
    """Analysis, cost and SQL, over some thousand files whose manifests were seen before. Others may use the machine."""
    media.target(DAILY_COLUMNS, daily(DAYS))
    many = [date(2020, 1, 1) + timedelta(days=number) for number in range(300)]
    for _ in range(7):
        media.play(*many, rows=1)
    media.lake.set_checkpoint("lake.db.plays", consumer="c", to="latest", reprocess=True)
    media.play(*many[:10], rows=1)
    capture = media.capture()
    took = []
    for _ in range(4):
        started = time.thread_time()
        refresh = media.refresh(DAILY, capture, SLOW)
        took.append(time.thread_time() - started)
    assert refresh.strategy is not StrategyName.FULL
    assert min(took) < 0.1, took
