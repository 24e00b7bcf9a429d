"""Random queries over random histories: whatever strategy is said to be right leaves what a full computation gives."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from dalsegno.rewrite.analysis import Analysis, analyse
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Strategy, StrategyName
from dalsegno.rewrite.tables import Name, Reading, Table
from tests.iceberg.support import NAMESPACE, Place, fresh_name, sqlite_settings
from tests.rewrite.histories import RandomLake
from tests.rewrite.lakes import captured, differing, reading_of, spec_of, table_of
from tests.rewrite.queries import REQUIRED, TABLES, Made, Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUERIES = 6
STEPS = 3
#: (operator, strategy, kind of change) → how often.
covered: Counter[tuple[str, str, str]] = Counter()
offered: Counter[str] = Counter()


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("rewrites")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    made.lake.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, count = (metafunc.config.getoption(name) for name in ("--first-rewrite", "--rewrites"))
        metafunc.parametrize("seed", range(first, first + count))


@dataclass
class Declared:
    """A query with its target."""

    made: Made
    analysis: Analysis
    target: Table
    steps: list[str] = field(default_factory=list)


def declared(place: Place, chance: random.Random, lake: RandomLake, sources: list[Table]) -> Declared:
    names = {name: table.full for name, table in lake.tables.items()}
    made = Maker(chance, names).made()
    partitioned = ""
    by_day = [name for name, kind in made.columns.items() if kind == "date"]
    if by_day and chance.random() < 0.7:
        partitioned = by_day[0]
    elif "at" in made.columns and made.columns["at"] == "timestamp" and chance.random() < 0.7:
        partitioned = "days(at)"
    name = (place.catalog, NAMESPACE, f"target_{fresh_name()}")
    clause = f"PARTITIONED BY ({partitioned})" if partitioned else ""
    place.sql(f"CREATE TABLE {'.'.join(name)} USING iceberg {clause} AS {made.sql}")
    target = table_of(place, name, partitioned)
    analysis = analyse(made.sql, sources, kinds=target.columns if chance.random() < 0.8 else None)
    return Declared(made, analysis, target)


def test_targets_equal_the_full_query(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    lake = RandomLake.begun(place, seed)
    sources = [
        Table((place.catalog, *table.name.split(".")), TABLES[name], spec_of(lake.specs[name]), REQUIRED[name])
        for name, table in lake.tables.items()
    ]
    consumer = f"rewrites_{seed}"
    for table in lake.tables.values():
        place.lake.capture(table.name, consumer=consumer, start="full").commit()
    queries = [declared(place, chance, lake, sources) for _ in range(QUERIES)]
    for step in range(STEPS):
        appends_only = chance.random() < 0.4
        for _ in range(chance.choice([1, 2, 2, 3])):
            lake.go_on(appends_only=appends_only)
        found = {
            source.name: taken
            for source, table in zip(sources, lake.tables.values(), strict=True)
            if (taken := captured(place, table.name, consumer)) is not None
        }
        if not found:
            continue
        reading = reading_of(found)
        for query in queries:
            check(
                place,
                query,
                reading,
                {name: kind for name, (kind, _) in found.items()},
                chance,
                (seed, step, lake.steps),
            )
        for _, changes in found.values():
            changes.commit()


def check(
    place: Place, query: Declared, reading: Reading, kinds: Mapping[Name, Changed], chance: random.Random, story: Any
) -> None:
    relevant = {name: kind for name, kind in kinds.items() if name in query.analysis.sources}
    if not relevant:
        assert not differing(place, query.made.sql, query.target)
        return
    possible = [each for each in strategies_for(query.analysis, query.target, relevant) if each.is_possible]
    assert possible[-1].name is StrategyName.FULL
    offered.update(each.name for each in possible)
    chosen: Strategy = chance.choice(possible[:-1] or possible)
    own = Reading({name: reading.changes[name] for name in relevant}, reading.others)
    probe = chosen.probe(own)
    if probe is not None and place.sql(probe):
        covered["probe", chosen.name, "found something"] += 1
        chosen = possible[-1]
    statements = chosen.statements(own)
    query.steps.append(f"{chosen.name} {chosen.key} after {[str(kind) for kind in relevant.values()]}")
    context = "\n".join([*map(str, story), *query.steps, "-- query", query.made.sql, "-- statements", *statements])
    try:
        for statement in statements:
            place.sql(statement)
    except Exception as error:
        raise AssertionError(f"{str(error)[:2000]}\n{context}") from error
    difference = differing(place, query.made.sql, query.target)
    assert not difference, f"{difference}\n{context}"
    change = "any" if Changed.ANY in relevant.values() else "appended"
    for operator in query.made.operators:
        covered[operator, chosen.name, change] += 1


def test_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    """Print which operator was combined with which strategy and change."""
    names = [(strategy, change) for strategy in StrategyName for change in ("appended", "any")]
    with capsys.disabled():
        sys.stdout.write("\n")
        sys.stdout.write(f"  offered: {dict(offered)}\n")
        for operator in sorted({operator for operator, _, _ in covered}):
            context = ", ".join(f"{s}/{c} {covered[operator, s, c]}" for s, c in names if covered[operator, s, c])
            context = context or str(sum(count for (name, _, _), count in covered.items() if name == operator))
            sys.stdout.write(f"  {operator}: {context}\n")
