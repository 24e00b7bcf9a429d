"""Data as it really comes: NULLs in keys, groups, partitions and measures, duplicates, ties, late rows, groups that
vanish.

For each example some rounds of statements, each followed by a run of its workflows, and for each target the SELECT that
says what it should hold by then. These are written without a look at the examples' own SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.settings import Settings
from dalsegno.spark.statements import statements
from dalsegno.steps.spark.sessions import opened_for


@dataclass(frozen=True)
class Case:
    #: Files to push, and the workflows that are run after each round.
    files: Sequence[str]
    runs: Sequence[str]
    #: Statements. ``D1`` is a day, ``OLD`` one long ago, ``T1`` a time, ``P(…)`` a payload.
    rounds: Sequence[str]
    #: Target → what it should hold.
    full: Mapping[str, str]
    #: What makes the tables: the statements of a file that create something, or a workflow.
    tables: str = "day1.sql"
    #: Workflows that have an oracle, which agrees.
    audited: Sequence[str] = ()
    #: The workflow of ``declared.yaml``, which keeps a table ``declared_…`` beside each target.
    declared: str | None = None


_DAYS = {"D1": "2026-11-01", "D2": "2026-11-02", "D3": "2026-11-03", "OLD": "2025-01-01"}
_LATEST = """
  SELECT {columns} FROM (
    SELECT *, row_number() OVER (PARTITION BY event_day, id ORDER BY version DESC, {more}) AS place
    FROM lake.media.playback
  ) WHERE place = 1
"""

CASES: Mapping[str, Case] = {
    "append": Case(
        ["append.yaml"],
        ["append"],
        [
            """INSERT INTO lake.media.playback VALUES (1, D1, 'at', 60), (1, D1, 'at', 60), (NULL, D1, NULL, NULL),
            (2, NULL, 'de', 90), (NULL, NULL, NULL, 1)""",
            """INSERT INTO lake.media.playback VALUES (NULL, NULL, NULL, 1), (1, D1, 'at', 60), (3, OLD, 'fr', 30),
            (4, D2, 'fr', -1)""",
        ],
        {
            "lake.media.playback_clean": """SELECT id, event_day, upper(country) AS country, seconds / 60 AS minutes
            FROM lake.media.playback WHERE seconds > 0"""
        },
        declared="append.declared",
    ),
    "auto-remediation": Case(
        ["demo.pipeline.yaml"],
        ["demo.pipeline"],
        [
            "INSERT INTO lake.media.playback VALUES (1, D1, 5), (1, D1, 5), (NULL, NULL, NULL)",
            "INSERT INTO lake.media.playback VALUES (1, D1, 5), (NULL, NULL, NULL), (2, NULL, 7)",
        ],
        {"lake.media.playback_copy": "SELECT * FROM lake.media.playback"},
        declared="demo.declared",
    ),
    "cron-or-airflow": Case(
        ["seconds.yaml"],
        ["seconds.by.day"],
        [
            """INSERT INTO lake.media.playback VALUES (1, D1, 5), (1, D1, 5), (2, D2, NULL), (3, NULL, 7),
            (NULL, NULL, NULL), (4, D3, 1)""",
            # A sum that was NULL gets a value, another loses it; a row gets its day; a day vanishes.
            """INSERT INTO lake.media.playback VALUES (2, D2, 9), (5, OLD, 3), (NULL, NULL, NULL);
            UPDATE lake.media.playback SET seconds = NULL WHERE id = 1;
            UPDATE lake.media.playback SET event_day = D1 WHERE id = 3;
            DELETE FROM lake.media.playback WHERE id = 4""",
            """DELETE FROM lake.media.playback WHERE event_day IS NULL;
            INSERT INTO lake.media.playback VALUES (6, D3, NULL)""",
        ],
        {
            "lake.media.seconds_by_day": """SELECT event_day, sum(seconds) AS seconds FROM lake.media.playback
            GROUP BY event_day"""
        },
        declared="seconds.by.day.declared",
    ),
    "merge": Case(
        ["merge.yaml"],
        ["merge"],
        [
            """INSERT INTO lake.media.playback VALUES (1, D1, 1, 5), (1, D1, 1, 5), (NULL, D1, 1, 5), (1, NULL, 1, 7),
            (NULL, NULL, NULL, NULL), (2, D1, NULL, 9), (3, D1, 1, 10), (3, D1, 1, 20)""",
            # Newer than NULL; ties with what is there, above and below; a late day.
            """INSERT INTO lake.media.playback VALUES (NULL, D1, 2, 6), (1, NULL, 1, 8), (2, D1, 1, NULL),
            (3, D1, 1, 15), (NULL, NULL, NULL, 3), (9, OLD, 1, 1), (9, OLD, NULL, 2), (1, D1, 1, 5)""",
            """INSERT INTO lake.media.playback VALUES (2, D1, 1, 4), (3, D1, 1, NULL), (3, D1, 1, 30),
            (NULL, D1, 1, 99), (4, D2, NULL, NULL), (4, D2, NULL, NULL)""",
        ],
        {"lake.media.playback_latest": _LATEST.format(columns="id, event_day, version, seconds", more="seconds DESC")},
        audited=["merge"],
        declared="merge.declared",
    ),
    "playback": Case(
        ["by_hand_daily.yaml", "by_hand_agg.yaml"],
        ["playback.by_hand_daily", "playback.by_hand_agg"],
        [
            # Twice at one time, with one payload and with two; without an id, a day, a country, a viewer, a payload.
            """INSERT INTO lake.media.playback VALUES
            (1, D1, T1, P(1, "AT", 100)), (1, D1, T1, P(1, "AT", 100)),
            (2, D1, T1, P(2, "AT", 200)), (2, D1, T1, P(1, "DE", 20)),
            (2, D2, T0, P(2, "DE", null)), (3, D1, NULL, P(1, null, 9999)),
            (4, D1, T2, P(null, "AT", 100)), (5, D1, T2, NULL),
            (NULL, D1, T3, P(3, "AT", 100)),
            (6, NULL, T3, P(1, "AT", 100)),
            (NULL, NULL, T3, P(null, null, 1))""",
            # Late: the same once more, and viewers who are known to their group, to another one, or not at all.
            """INSERT INTO lake.media.playback VALUES
            (1, D1, T4, P(1, "AT", 100)), (NULL, D1, T5, P(3, "AT", 100)),
            (6, NULL, T5, P(1, "AT", 100)), (6, D2, T5, P(1, "AT", 5)),
            (7, D1, T4, P(1, null, 50)), (8, D1, T4, P(9, null, 50)),
            (9, D1, T4, P(null, "AT", 50)), (10, NULL, T4, P(1, "AT", 1)),
            (11, NULL, T4, P(null, null, null)), (12, OLD, NULL, P(1, "AT", 1))""",
            """INSERT INTO lake.media.playback VALUES
            (13, NULL, T6, P(2, null, 1)), (14, D2, T6, P(2, "DE", 3)),
            (7, D1, T6, P(1, null, 50)), (12, OLD, T6, P(1, "AT", 1))""",
        ],
        {
            "lake.media.playback_daily": """
            WITH first AS (SELECT event_day, event_id, min(struct(received_at, payload)).payload AS p
              FROM lake.media.playback GROUP BY event_day, event_id),
            parsed AS (SELECT event_id, event_day, from_json(p,
              'profile_id BIGINT, title_id INT, country STRING, device STRUCT<id: INT>, watched INT') AS e FROM first)
            SELECT event_id, event_day, e.profile_id, e.title_id, genre, e.country, device_type,
              least(e.watched, runtime) AS seconds, e.watched >= 0.9 * runtime AS is_finished
            FROM parsed, lake.media.titles t, lake.media.devices d
            WHERE t.title_id = e.title_id AND d.device_id = e.device.id""",
            "lake.media.playback_daily_agg": """
            SELECT event_day, country, device_type, count(*) AS plays, count_if(is_finished) AS finished,
              sum(seconds) AS seconds, count(DISTINCT profile_id) AS viewers
            FROM lake.media.playback_daily GROUP BY event_day, country, device_type""",
        },
        tables="setup.yaml",
        audited=["playback.by_hand_daily", "playback.by_hand_agg"],
    ),
    "rolling-window": Case(
        ["rolling.yaml"],
        ["rolling.window"],
        [
            "INSERT INTO lake.media.playback VALUES (D1, 1), (D1, 1), (D2, NULL), (OLD, NULL), (OLD, 2), (NULL, 1)",
            """INSERT INTO lake.media.playback VALUES (D1, NULL), (date_add(D1, 6), 1), (date_add(D1, 7), 1),
            (date_sub(D1, 6), 3), (NULL, NULL)""",
        ],
        {
            # A row without a day is in no window.
            "lake.media.weekly_members": """SELECT d.event_day AS last_day, count(*) AS plays,
              count(DISTINCT member) AS members
            FROM (SELECT DISTINCT event_day FROM lake.media.playback) d
            JOIN lake.media.playback p ON datediff(d.event_day, p.event_day) BETWEEN 0 AND 6 GROUP BY d.event_day"""
        },
        declared="rolling.window.declared",
    ),
    "row-filter": Case(
        ["titles.yaml"],
        ["row.filter"],
        [
            """INSERT INTO lake.media.playback VALUES (D1, 'Ran', 1), (D1, 'Ran', 1), (D1, NULL, 1), (NULL, 'Ran', 1),
            (NULL, NULL, NULL)""",
            """INSERT INTO lake.media.playback VALUES (D1, NULL, 2), (D1, NULL, NULL), (NULL, 'Ran', 1),
            (NULL, NULL, 4), (OLD, 'Ran', NULL), (D1, 'Ran', 1)""",
            "INSERT INTO lake.media.playback VALUES (NULL, 'Mirror', 2), (D1, NULL, 2), (D2, NULL, 3)",
        ],
        {
            "lake.media.titles_by_day": """SELECT event_day AS day, title, count(*) AS plays,
            count(DISTINCT member) AS members FROM lake.media.playback GROUP BY event_day, title"""
        },
        declared="row.filter.declared",
    ),
    "several-stages": Case(
        ["stage1.yaml", "stage2.yaml", "pipeline.yaml"],
        ["stages"],
        [
            """INSERT INTO lake.media.playback VALUES (1, D1, 1, 'Ran', 1, false), (1, D1, 1, 'Ran', 1, false),
            (NULL, D1, 1, 'Ran', 1, false), (2, D1, 1, NULL, NULL, false), (3, NULL, 1, 'Ran', 2, false),
            (4, D2, NULL, 'Solo', 1, false), (5, D1, 1, 'Tie', 1, false), (5, D1, 1, 'Toe', 2, false)""",
            # Groups vanish: one without a title, one of a cancelled event, one by a tie, one without a day.
            """INSERT INTO lake.media.playback VALUES (2, D1, 2, 'Found', NULL, false), (4, D2, 1, 'Solo', 1, true),
            (5, D1, 1, 'Tue', NULL, false), (3, NULL, 2, 'Ran', 2, NULL), (NULL, D1, 2, NULL, NULL, false),
            (6, OLD, 1, NULL, 6, false)""",
            """INSERT INTO lake.media.playback VALUES (3, NULL, 3, NULL, 2, false), (NULL, NULL, 1, NULL, 1, false),
            (6, OLD, 1, NULL, NULL, true), (6, OLD, 1, NULL, 6, true), (NULL, D1, 3, 'Ran', 1, true)""",
        ],
        {
            "lake.media.playback_daily": _LATEST.format(
                columns="id, event_day, version, title, member, cancelled",
                more="title DESC, member DESC, cancelled DESC",
            ),
            "lake.media.playback_daily_agg": """SELECT event_day, title, count(*) AS plays,
            count(DISTINCT member) AS members FROM lake.media.playback_daily WHERE NOT cancelled
            GROUP BY event_day, title""",
        },
        declared="stages.declared",
    ),
    "several-tables": Case(
        ["orders.yaml"],
        ["several.tables"],
        [
            """INSERT INTO lake.shop.customers VALUES (1, 'Ada', 'at'), (2, NULL, NULL), (NULL, 'Nobody', 'xx'),
            (4, 'Eve', 'fr'), (4, 'Eva', 'fr');
            INSERT INTO lake.shop.orders VALUES (10, D1, 1, 9.90), (NULL, D1, 1, 1), (NULL, D2, NULL, 2),
            (11, NULL, 2, 5), (12, D1, 3, 7), (13, D1, 4, NULL), (14, D1, 1, 1), (14, D1, 1, 1)""",
            # A customer gets a name, one of two with one id goes, one comes late; orders vanish, or lose their day.
            """UPDATE lake.shop.customers SET name = 'Bea' WHERE id = 2;
            DELETE FROM lake.shop.customers WHERE name = 'Eva';
            INSERT INTO lake.shop.customers VALUES (3, NULL, 'tr');
            DELETE FROM lake.shop.orders WHERE id = 10;
            UPDATE lake.shop.orders SET day = NULL WHERE id = 14;
            INSERT INTO lake.shop.orders VALUES (NULL, NULL, 2, NULL), (14, D3, 2, 4), (11, NULL, 2, 5)""",
            """UPDATE lake.shop.orders SET id = 20 WHERE id IS NULL;
            DELETE FROM lake.shop.customers WHERE id = 1""",
        ],
        {
            "lake.shop.orders_with_customers": """SELECT o.id, day, amount, name, country FROM lake.shop.orders o
            LEFT JOIN lake.shop.customers c ON c.id = o.customer"""
        },
        declared="several.tables.declared",
    ),
}


@dataclass
class Lakeside:
    """A folder with settings, in which workflows are run."""

    settings: Settings
    operations: Operations

    def make_tables(self, file: str) -> None:
        path = self.settings.root / file
        if path.suffix == ".yaml":
            self.run(self.operations.workflows.push_file(path).workflow_id)
        else:
            self.sql(";".join(each for each in statements(path.read_text(encoding="utf-8")) if "CREATE" in each))

    def sql(self, text: str) -> list[dict[str, object]]:
        """Execute statements; the rows of the last one."""
        # A session each: it remembers tables for a while, whatever others do to them.
        session = opened_for(self.settings, uuid4().hex)
        rows: list[dict[str, object]] = []
        for statement in statements(spelled_out(text)):
            rows = session.execute(statement, 100).to_pylist()
        session.release()
        return rows

    def run(self, workflow_id: str) -> None:
        run = self.operations.runs.finish(self.operations.runs.start(workflow_id, {}).id)
        assert run.status is RunStatus.SUCCEEDED, run.reason

    def differing(self, full: Mapping[str, str]) -> list[dict[str, object]]:
        return self.sql(comparison(full))


def comparison(full: Mapping[str, str]) -> str:
    """A query for the rows that a target lacks, or has too many of, and how many of each."""
    query = " UNION ALL ".join(
        f"SELECT '{target}' AS target, to_json(struct(*)) AS row, 1 AS net FROM ({query}) UNION ALL "
        f"SELECT '{target}', to_json(struct(*)), -1 FROM {target}"
        for target, query in full.items()
    )
    return f"SELECT target, row, sum(net) AS net FROM ({query}) GROUP BY ALL HAVING net <> 0 ORDER BY ALL"


def spelled_out(text: str) -> str:
    """With days and payloads in full."""
    payload = r"""'{"profile_id":\1,"title_id":1,"country":\2,"device":{"id":7},"watched":\3}'"""
    text = re.sub(r"\bP\(([^,]+), ([^,]+), ([^)]+)\)", payload, text)
    text = re.sub(r"\bT(\d)\b", r"TIMESTAMP'2026-11-02 0\1:00'", text)
    return re.sub(r"\b(D1|D2|D3|OLD)\b", lambda found: f"DATE'{_DAYS[found[0]]}'", text)
