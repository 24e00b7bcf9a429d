"""The two stages of the playback example, declared by their plain SELECTs: each strategy leaves what the SELECT
gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import yaml

from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.rewrite.tables import Name, Table
from tests.docs.markdown import ROOT
from tests.examples.hostile import CASES, spelled_out
from tests.iceberg.support import Place, fresh_name, sqlite_settings
from tests.rewrite.lakes import captured, differing, reading_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EXAMPLE = ROOT / "examples" / "playback"
STAGE_1 = [StrategyName.NEW_KEYS, StrategyName.PARTITIONS, StrategyName.KEYS]
STAGE_2 = [StrategyName.DELTA, StrategyName.PARTITIONS, StrategyName.KEYS]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("playback")
    made = Place.make(spark, folder, sqlite_settings(folder, fresh_name()))
    yield made
    made.lake.close()


def select(file: str) -> str:
    query = (EXAMPLE / file).read_text(encoding="utf-8")
    return query.replace("${playback}", "lake.media.playback").replace("${daily}", "lake.media.playback_daily")


def placed(place: Place, sql: str) -> str:
    return sql.replace("lake.media", f"{place.catalog}.media")


def brought_up_to_date(
    place: Place, target: Table, query: str, sources: list[Table], wanted: StrategyName
) -> StrategyName:
    """What a run of a declared table does: capture, write, commit. Returns what it took."""
    consumer = target.name[-1]
    found = {
        source.name: taken for source in sources if (taken := captured(place, ".".join(source.name[1:]), consumer))
    }
    analysis = analyse(query, sources, kinds=target.columns)
    reading = reading_of(found)
    offered = {
        each.name: each for each in strategies_for(analysis, target, {name: kind for name, (kind, _) in found.items()})
    }
    chosen = offered[wanted]
    if not chosen.is_possible or ((probe := chosen.probe(reading)) and place.sql(probe)):
        chosen = offered[StrategyName.KEYS]
    for statement in chosen.statements(reading):
        place.sql(statement)
    for _, changes in found.values():
        changes.commit()
    return chosen.name


def test_both_stages(place: Place) -> None:
    setup = yaml.safe_load((EXAMPLE / "setup.yaml").read_text(encoding="utf-8"))["Workflow"]
    script = setup["jobs"][0]["job"]["spark"]["script"]
    for param in ("source", "daily", "agg"):
        script = script.replace("${" + param + "}", setup[param])
    for statement in filter(str.strip, placed(place, script).split(";")):
        place.sql(statement)
    daily_query, agg_query = (placed(place, select(file)) for file in ("daily.sql", "daily_agg.sql"))

    def name(of: str) -> Name:
        return (place.catalog, "media", of)

    daily, agg = name("playback_daily"), name("playback_daily_agg")
    sources = [
        table_of(place, name("playback"), "event_day"),
        table_of(place, name("titles")),
        table_of(place, name("devices")),
    ]
    stage_1: dict[StrategyName, Table] = {}
    stage_2: dict[StrategyName, Table] = {}
    for at, (first, second) in enumerate(zip(STAGE_1, STAGE_2, strict=True)):
        for like, targets, wanted in ((daily, stage_1, first), (agg, stage_2, second)):
            copy = (*like[:-1], f"{like[-1]}_{at}")
            made = f"CREATE TABLE {'.'.join(copy)} USING iceberg PARTITIONED BY (event_day)"
            place.sql(f"{made} AS SELECT * FROM {'.'.join(like)}")
            targets[wanted] = table_of(place, copy, "event_day")
    taken = []
    rounds = [*CASES["playback"].rounds[:2], "DELETE FROM lake.media.playback WHERE event_id = 1 OR event_day IS NULL"]
    for statements in rounds:
        place.sql(placed(place, spelled_out(statements)))
        for (wanted, target), (wanted_next, following) in zip(stage_1.items(), stage_2.items(), strict=True):
            taken.append((wanted, brought_up_to_date(place, target, daily_query, sources, wanted)))
            assert not differing(place, daily_query, target), taken
            own_query = agg_query.replace(".".join(daily), ".".join(target.name))
            taken.append((wanted_next, brought_up_to_date(place, following, own_query, [target], wanted_next)))
            assert not differing(place, own_query, following), taken
    assert {chosen for _, chosen in taken} == {*STAGE_1, *STAGE_2}
