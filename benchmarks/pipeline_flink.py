"""Stage 1 of the pipeline by Flink: a bounded read between two snapshots, as batch jobs in a warm Flink of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from benchmarks.pipeline_forms import Form, Tables
from dalsegno.iceberg.catalogs import spark_configuration
from examples.playback.meter import Cost
from examples.playback.place import Place
from tests.lakes.flink import Flink, running_flink

MEMORY, PARALLELISM = "3g", 2
#: What Flink sorts and hashes in; by default it has 128 MB on one machine, and writes the rest to disk.
CONF = {"taskmanager.memory.managed.size": "1g", "taskmanager.memory.network.max": "128m"}
STAGE = "daily"


class ProcessMeter:
    """What a process takes, as the system counts it: compilation, garbage and shuffles included."""

    def __init__(self, process_id: int) -> None:
        self._folder = Path(f"/proc/{process_id}")

    def measure(self, action: Callable[..., object], *arguments: object) -> Cost:
        before, began = self._counted(), time.perf_counter()
        action(*arguments)
        wall = time.perf_counter() - began
        cpu, read, written = (now - then for now, then in zip(self._counted(), before, strict=True))
        return Cost(wall, cpu / os.sysconf("SC_CLK_TCK"), read, written)

    def _counted(self) -> tuple[int, int, int]:
        """Ticks of processors, bytes read, bytes written; nothing where the system does not say."""
        if not self._folder.exists():
            return (0, 0, 0)
        # The name of the program is in parentheses, and may hold spaces.
        fields = (self._folder / "stat").read_text().rpartition(")")[2].split()
        read, written = (int(line.split()[1]) for line in (self._folder / "io").read_text().splitlines()[:2])
        return int(fields[11]) + int(fields[12]), read, written


@contextmanager
def warm_flink(place: Place, folder: Path) -> Iterator[Flink]:
    """A Flink that sees the lake."""
    catalog, prefix = place.settings.catalogs["lake"], "spark.sql.catalog.lake."
    options = {
        key.removeprefix(prefix): value
        for key, value in spark_configuration(catalog).items()
        if key.startswith(prefix) and key != f"{prefix}type"
    }
    # Flink knows fewer types of catalogs by name than Spark.
    options["catalog-impl"] = "org.apache.iceberg.jdbc.JdbcCatalog"
    with running_flink(folder / "flink.log", MEMORY, {"parallelism.default": str(PARALLELISM), **CONF}) as started:
        started.add_catalog("lake", {**options, "cache-enabled": "false"})
        yield started


def flink_form(flink: Flink, tables: Tables) -> Form:
    def run(_stage: str, _day: date) -> None:
        source, into = tables.source, tables.target("flink", STAGE)
        [[after]] = flink.rows(
            f"SELECT snapshot_id FROM {tables.marks} WHERE form = 'flink' AND stage = '{STAGE}' "
            "ORDER BY `at` DESC LIMIT 1"
        )
        [[upto]] = flink.rows(
            f"SELECT snapshot_id FROM {_metadata(source, 'snapshots')} ORDER BY committed_at DESC LIMIT 1"
        )
        changes = f"{source} /*+ OPTIONS('start-snapshot-id' = '{after}', 'end-snapshot-id' = '{upto}') */"
        known_days = flink.rows(
            f"SELECT DISTINCT event_day FROM {changes} "
            f"WHERE event_day IN (SELECT `partition`.event_day FROM {_metadata(into, 'partitions')})"
        )
        flink.sql(f"INSERT INTO {into} {_new_events(changes, into, [day for (day,) in known_days])}")
        flink.sql(f"INSERT INTO {tables.marks} VALUES ('flink', '{STAGE}', {upto}, CURRENT_TIMESTAMP)")

    return Form("flink", run, (STAGE,), ProcessMeter(flink.process_id))


def _metadata(table: str, kind: str) -> str:
    namespace, _, name = table.rpartition(".")
    return f"{namespace}.`{name}${kind}`"


def _new_events(changes: str, into: str, known_days: list[date]) -> str:
    """The SELECT of the example's incremental form, in the SQL of Flink."""
    days = ", ".join(["DATE '1970-01-01'", *(f"DATE '{day}'" for day in known_days)])
    return f"""
        SELECT /*+ BROADCAST(t, d) */ event_id, event_day, profile_id, e.title_id, genre, country, device_type,
          LEAST(watched, runtime), watched >= 0.9 * runtime
        FROM (
          SELECT event_id, event_day,
            CAST(JSON_VALUE(payload, '$.profile_id') AS BIGINT) AS profile_id,
            JSON_VALUE(payload, '$.title_id' RETURNING INTEGER) AS title_id,
            JSON_VALUE(payload, '$.country') AS country,
            JSON_VALUE(payload, '$.device.id' RETURNING INTEGER) AS device_id,
            JSON_VALUE(payload, '$.watched' RETURNING INTEGER) AS watched
          FROM (
            SELECT /*+ BROADCAST(k) */ c.event_id, c.event_day, c.payload,
              ROW_NUMBER() OVER (PARTITION BY c.event_day, c.event_id ORDER BY c.received_at, c.payload) AS delivery
            FROM {changes} c LEFT JOIN (
              SELECT DISTINCT w.event_day, w.event_id
              FROM {into} w JOIN (SELECT event_day, event_id FROM {changes} WHERE event_day IN ({days})) l
                ON l.event_day = w.event_day AND l.event_id = w.event_id
              WHERE w.event_day IN ({days})
            ) k ON k.event_day = c.event_day AND k.event_id = c.event_id
            WHERE k.event_id IS NULL
          )
          WHERE delivery = 1
        ) e
        JOIN lake.media.titles t ON t.title_id = e.title_id
        JOIN lake.media.devices d ON d.device_id = e.device_id
    """
