"""A table as a Spark session sees it, classic or Connect."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dalsegno.job.tables import Snapshot, Table, reading, without_pins

#: By this name the configuration of a driver says which captures it processes.
IN_SPARK = "spark.dalsegno.captures"
_SPARK_PROPERTY = "spark.sql.iceberg.snapshot-property."
#: What is asked of a snapshot's summary.
_ASKED = (
    *(f"dalsegno.{name}" for name in ("captures", "workflow", "step", "place", "unit", "statement", "attempt")),
    *("wap.id", "published-wap-id", "source-snapshot-id", "deleted-data-files"),
    *(f"{which}-{what}" for which in ("added", "total") for what in ("records", "data-files", "delete-files")),
)


class SparkTable:
    def __init__(self, spark: Any, name: str, *, missing_ok: bool = False) -> None:
        self._spark, self._name, self._missing_ok = spark, name, missing_ok
        self._parts = _parts(name)
        self.branch: str | None = None
        with reading(name):
            self._find()

    def _find(self) -> None:
        """A name such as ``db.t.branch_b`` is a branch of a table, unless there is a table called so."""
        catalog = self._spark.catalog
        if len(self._parts) == 1:
            # Of a name alone, Spark would not find the table's snapshots.
            self._parts = [catalog.currentCatalog(), *_parts(catalog.currentDatabase()), *self._parts]
        named = re.fullmatch(r"branch_(.+)", self._parts[-1])
        if named and not catalog.tableExists(_quoted([*self._parts, "refs"])):
            self.branch = named[1]
            self._parts.pop()

    def read(self) -> Table:
        table = _quoted(self._parts)
        with reading(self._name):
            if self._missing_ok and not self._spark.catalog.tableExists(table):
                return Table(self._name)
            # A session remembers tables for a while, whatever others write to them.
            self._spark.catalog.refreshTable(table)
            # One query: each is a job of Spark's. Each part of the name is quoted, so it is a name, whatever it says.
            rows = self._spark.sql(
                "SELECT 'snapshot' AS what, snapshot_id, parent_id, "  # noqa: S608
                "unix_millis(committed_at) AS at, operation AS name, "
                f"map_filter(summary, (name, value) -> name IN {_ASKED}) AS summary FROM {table}.snapshots "
                f"UNION ALL SELECT type, snapshot_id, NULL, NULL, name, NULL FROM {table}.refs "
                f"UNION ALL SELECT 'published', snapshot_id, NULL, NULL, NULL, NULL FROM {table}.history"
            ).collect()
        snapshots = [
            Snapshot(
                row["snapshot_id"], row["parent_id"], row["at"], {**(row["summary"] or {}), "operation": row["name"]}
            )
            for row in rows
            if row["what"] == "snapshot"
        ]
        heads = {row["name"]: row["snapshot_id"] for row in rows if row["what"] == "BRANCH"}
        published = frozenset(row["snapshot_id"] for row in rows if row["what"] == "published")
        return Table(self._name, {each.id: each for each in snapshots}, without_pins(heads), published)

    def told(self) -> dict[str, Any]:
        """A driver on another machine has no files of the attempt."""
        found: dict[str, Any] = json.loads(self._spark.conf.get(IN_SPARK, None) or "{}")
        return found

    @contextmanager
    def stamped(self, stamp: Mapping[str, str]) -> Iterator[None]:
        """Every write of the session gets the stamp meanwhile."""
        conf = self._spark.conf
        before = {name: conf.get(f"{_SPARK_PROPERTY}{name}", None) for name in stamp}
        try:
            for name, value in stamp.items():
                conf.set(f"{_SPARK_PROPERTY}{name}", value)
            yield
        except BaseException:
            # What failed is what should be reported, and a session that is gone has no settings.
            with suppress(Exception):
                _restore(conf, before)
            raise
        _restore(conf, before)


def _restore(conf: Any, before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            conf.unset(f"{_SPARK_PROPERTY}{name}")
        else:
            conf.set(f"{_SPARK_PROPERTY}{name}", value)


def _quoted(parts: Iterable[str]) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def _parts(name: str) -> list[str]:
    found = re.findall(r"`(?:[^`]|``)*`|[^.`]+", name)
    return [part[1:-1].replace("``", "`") if part.startswith("`") else part for part in found]
