"""The forms of statements that scenarios are made of, and what each must leave in its targets.

All of them add up in the end: what is written twice or not at all shows. In the texts, ``<rows>`` stands for the
captured rows (id, part, v), ``<filter>`` for the predicate of their partitions, ``<source>`` for the source, and other
names in angle brackets for tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a table has for each captured row, or for each time that a step is executed behind a capture."""

    #: The row, once; columns id, part, v.
    ROWS = "rows"
    #: The same, on branch ``b``.
    BRANCH_ROWS = "branch rows"
    #: How many rows each part has; columns part, n.
    TOTALS = "totals"
    #: Numbers that add up to the number of rows; column n.
    COUNTS = "counts"
    #: One row: how often the step was executed; column n.
    TICKS = "ticks"
    #: 1, 2, 3 and so on, one for each time; column n.
    SEQUENCE = "sequence"
    #: Not compared; columns id, part, v.
    STAGE = "stage"
    #: The statements make it themselves, with the rows.
    MADE_ROWS = "made rows"
    #: The statements make it themselves; not compared.
    MADE = "made"


@dataclass(frozen=True)
class Form:
    name: str
    statements: tuple[str, ...]
    tables: Mapping[str, Kind] = field(default_factory=lambda: {"t": Kind.ROWS})
    #: Whether it may be executed for a part of the rows at a time, or for others of the same partition.
    is_rowwise: bool = True
    is_idempotent: bool = False
    is_atomic: bool = False
    #: Whether its last two statements may be swapped.
    is_swappable: bool = False
    #: Whether the tables' names begin with a digit.
    has_digits: bool = False


_APPEND = "INSERT INTO <t> SELECT id, part, v FROM <rows>"
_HALVES = tuple(f"{_APPEND} WHERE pmod(id, 2) = {half}" for half in (0, 1))
_STAGED = (
    "INSERT INTO <stage> SELECT id, part, v FROM <rows>",
    "MERGE INTO <totals> t USING (SELECT part, count(*) AS n FROM <stage> GROUP BY part) s ON t.part <=> s.part "
    "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *",
)
_STAGES = {"stage": Kind.STAGE, "totals": Kind.TOTALS}
_PAIR = {"t": Kind.ROWS, "u": Kind.ROWS}

FORMS = (
    Form("INSERT INTO", (_APPEND,)),
    Form("INSERT INTO, twice", (_APPEND, _APPEND.replace("<t>", "<u> (id, part, v)")), _PAIR, is_swappable=True),
    Form("INSERT INTO the same, twice", _HALVES, is_swappable=True),
    Form("atomic INSERT, twice", _HALVES, is_swappable=True, is_atomic=True),
    Form(
        "atomic DELETE WHERE, INSERT",
        ("DELETE FROM <t> WHERE <filter>", "INSERT INTO <t> SELECT id, part, v FROM <source> WHERE <filter>"),
        is_rowwise=False,
        is_atomic=True,
    ),
    Form(
        "atomic INSERT, DELETE",
        (
            "CREATE TEMPORARY VIEW before AS SELECT max(n) AS n FROM <ticks>",
            "INSERT INTO <ticks> SELECT n + 1 FROM before",
            "DELETE FROM <ticks> WHERE n < (SELECT n FROM before)",
        ),
        {"ticks": Kind.TICKS},
        is_atomic=True,
    ),
    Form("WITH … INSERT INTO", ("WITH x AS (SELECT * FROM <rows>) INSERT INTO <t> SELECT id, part, v FROM x",)),
    Form("INSERT … BY NAME", ("INSERT INTO <t> BY NAME SELECT v, part, id FROM <rows>",)),
    Form("small letters", ("/* new; */ insert into table <t> -- all of them;\nselect id, part, v from <rows>",)),
    Form("RESET, INSERT", ("SET spark.sql.shuffle.partitions = 1", "RESET", _APPEND)),
    Form(
        "INSERT, CALL, INSERT",
        (_APPEND, "CALL <catalog>.system.rewrite_manifests('db.<name of t>')", _APPEND.replace("<t>", "<u>")),
        _PAIR,
    ),
    Form("TRUNCATE, INSERT, MERGE", ("TRUNCATE TABLE <stage>", *_STAGED), _STAGES),
    Form("DELETE, INSERT, MERGE", ("DELETE FROM <stage>", *_STAGED), _STAGES),
    Form(
        "MERGE",
        (
            "MERGE INTO <totals> t USING (SELECT part, count(*) AS n FROM <rows> GROUP BY part) s ON t.part <=> s.part "
            "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *",
        ),
        {"totals": Kind.TOTALS},
    ),
    Form(
        "DELETE WHERE, INSERT",
        ("DELETE FROM <t> WHERE <filter>", "INSERT INTO <t> SELECT id, part, v FROM <source> WHERE <filter>"),
        is_rowwise=False,
    ),
    Form(
        "INSERT OVERWRITE",
        (
            "SET spark.sql.sources.partitionOverwriteMode = dynamic",
            "INSERT OVERWRITE <t> SELECT id, part, v FROM <source> WHERE <filter>",
        ),
        is_rowwise=False,
    ),
    Form(
        "INSERT … REPLACE WHERE",
        ("INSERT INTO <t> REPLACE WHERE <filter> SELECT id, part, v FROM <source> WHERE <filter>",),
        is_rowwise=False,
    ),
    Form("USE, INSERT", ("USE <namespace>", "INSERT INTO <name of t> SELECT id, part, v FROM <rows>")),
    Form("branch", ("INSERT INTO <t>.branch_b SELECT id, part, v FROM <rows>",), {"t": Kind.BRANCH_ROWS}),
    Form("spark.wap.branch", ("SET spark.wap.branch = b", _APPEND), {"t": Kind.BRANCH_ROWS}),
    Form("FROM … INSERT INTO", ("FROM <rows> INSERT INTO <t> SELECT id, part, v",)),
    Form(
        "FROM … INSERT INTO … INSERT INTO",
        ("FROM <rows> INSERT INTO <t> SELECT id, part, v INSERT INTO <u> SELECT id, part, v",),
        _PAIR,
    ),
    Form("BEGIN … END", (f"BEGIN {_APPEND}; {_APPEND.replace('<t>', '<u>')}; END",), _PAIR),
    Form("EXECUTE IMMEDIATE", ("EXECUTE IMMEDIATE 'INSERT INTO <t> SELECT id, part, v FROM <rows>'",)),
    Form("IDENTIFIER()", ("INSERT INTO IDENTIFIER('<t>') SELECT id, part, v FROM <rows>",)),
    Form("name with a digit", (_APPEND,), has_digits=True),
    Form(
        "CREATE TABLE AS SELECT",
        ("DROP TABLE IF EXISTS <made>", "CREATE TABLE <made> USING iceberg AS SELECT id, part, v FROM <rows>",
         "INSERT INTO <t> SELECT id, part, v FROM <made>"),
        {"t": Kind.ROWS, "made": Kind.MADE},
    ),
    Form(
        "CREATE OR REPLACE TABLE AS SELECT",
        ("CREATE OR REPLACE TABLE <made> USING iceberg AS SELECT id, part, v FROM <rows>",
         "INSERT INTO <t> SELECT id, part, v FROM <made>"),
        {"t": Kind.ROWS, "made": Kind.MADE},
    ),
    Form(
        "CREATE TABLE IF NOT EXISTS, INSERT",
        ("CREATE TABLE IF NOT EXISTS <made> (id BIGINT, part STRING, v BIGINT) USING iceberg",
         _APPEND.replace("<t>", "<made>")),
        {"made": Kind.MADE_ROWS},
    ),
    Form(
        "temporary view",
        ("CREATE OR REPLACE TEMPORARY VIEW x AS SELECT * FROM <rows>", _APPEND.replace("<rows>", "x"),
         "INSERT INTO <u> SELECT id, part, v FROM x"),
        _PAIR,
        is_swappable=True,
    ),
    Form(
        "SET VAR",
        ("DECLARE VARIABLE counted BIGINT", "SET VAR counted = (SELECT count(*) FROM <rows>)", _APPEND,
         "INSERT INTO <counts> SELECT counted"),
        {"t": Kind.ROWS, "counts": Kind.COUNTS},
        is_swappable=True,
    ),
    Form(
        "SET VAR from the target",
        ("DECLARE VARIABLE last BIGINT DEFAULT 0", "SET VAR last = (SELECT coalesce(max(n), 0) FROM <a>)",
         "INSERT INTO <a> SELECT last + 1", "INSERT INTO <b> SELECT last + 1"),
        {"a": Kind.SEQUENCE, "b": Kind.SEQUENCE},
        is_swappable=True,
    ),
    Form(
        "CACHE TABLE",
        ("CACHE TABLE kept AS SELECT * FROM <rows>", _APPEND.replace("<rows>", "kept"),
         "INSERT INTO <u> SELECT id, part, v FROM kept"),
        _PAIR,
        is_swappable=True,
    ),
    Form("UPDATE", ("UPDATE <ticks> SET n = n + 1",), {"ticks": Kind.TICKS}),
    Form(
        "UPDATE, INSERT",
        ("UPDATE <ticks> SET n = n + 1", _APPEND),
        {"ticks": Kind.TICKS, "t": Kind.ROWS},
        is_swappable=True,
    ),
    Form("ALTER TABLE, INSERT", ("ALTER TABLE <t> SET TBLPROPERTIES ('touched' = 'yes')", _APPEND)),
    Form(
        "DELETE WHERE … IN, INSERT",
        ("DELETE FROM <t> WHERE id IN (SELECT id FROM <rows>)", _APPEND),
    ),
    Form(
        "idempotent MERGE",
        (
            "MERGE INTO <t> t USING (SELECT id, part, v FROM <rows>) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        ),
        is_idempotent=True,
    ),
    Form(
        "idempotent TRUNCATE, INSERT, MERGE",
        (
            "TRUNCATE TABLE <stage>",
            _STAGED[0],
            "MERGE INTO <t> t USING <stage> s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        ),
        {"stage": Kind.STAGE, "t": Kind.ROWS},
        is_idempotent=True,
    ),
)  # fmt: skip


def joined(first: Form, second: Form) -> Form:
    """A script of both, each with tables of its own."""
    renamed = tuple(_PLACE.sub(_second, statement) for statement in second.statements)
    tables = {**first.tables, **{f"{name}2": kind for name, kind in second.tables.items()}}
    return Form(
        f"{first.name}; {second.name}",
        (*first.statements, *renamed),
        tables,
        is_rowwise=first.is_rowwise and second.is_rowwise,
        has_digits=first.has_digits,
    )


def can_be_joined(first: Form, second: Form) -> bool:
    """Whether they do not name the same views, variables or caches, and mean the same when they start over."""
    is_alike = not _WORDS.isdisjoint(_words(first) & _words(second))
    is_atomic = first.is_atomic or second.is_atomic
    return not (is_alike or is_atomic or first.is_idempotent or second.is_idempotent or second.has_digits)


#: Tables, in angle brackets; other things in them stay.
_PLACE = re.compile(r"<(name of )?(?!rows>|filter>|source>|namespace>|catalog>)(\w+)>")
#: What sessions have by these names.
_WORDS = frozenset({"VIEW", "DECLARE", "CACHE", "SET", "USE"})


def _second(found: re.Match[str]) -> str:
    return f"<{found[1] or ''}{found[2]}2>"


def _words(form: Form) -> set[str]:
    return {word for statement in form.statements for word in statement.split()}
