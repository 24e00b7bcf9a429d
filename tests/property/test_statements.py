"""Statements come out of a text as they went in, whatever is in their strings and comments."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.spark.statements import is_query, statements, target_of

_ANY = st.text(alphabet="ab;'\"`\\/*-+ \n$", max_size=8)


def _quoted(quote: str) -> st.SearchStrategy[str]:
    return _ANY.map(lambda text: quote + text.replace("\\", "\\\\").replace(quote, quote * 2) + quote)


_STRINGS = st.one_of(_quoted("'"), _quoted('"'))
_NAMES = _ANY.map(lambda text: "`" + text.replace("`", "``") + "`")
_RAW_STRINGS = st.text(alphabet="ab;\\/*- ", max_size=8).map(lambda text: f" r'{text}'")
_LINE_COMMENTS = st.text(alphabet="ab;'\"`/* ", max_size=8).map(lambda text: f"--{text}\n")
_COMMENTS = st.recursive(
    st.text(alphabet="ab;'\"`- \n", max_size=6), lambda inner: inner.map(lambda text: f"a/*{text}*/b"), max_leaves=4
).map(lambda text: f"/* {text} */")
_HINTS = st.just("/*+ broadcast(a) */")
_WORDS = st.sampled_from(["SELECT", "a", "1", "=", "case", "end", ", ", "- ", "/ ", "(x)", "if", "begin_date"])
_PIECES = st.one_of(_WORDS, _STRINGS, _NAMES, _RAW_STRINGS, _LINE_COMMENTS, _COMMENTS, _HINTS)
_STATEMENTS = st.lists(_PIECES, max_size=8).map(lambda pieces: " ".join(["SELECT", *pieces]).strip())


@given(st.lists(_STATEMENTS, max_size=5), st.sampled_from(["", ";", " ; -- the end", ";\n/* ; */"]))
def test_statements_come_out_as_they_went_in(parts: list[str], end: str) -> None:
    # A comment to the end of the line would swallow a semicolon on it.
    found = statements("\n;\n".join(parts) + "\n" + end)
    assert [_without_comment_at_end(part) for part in found] == [_without_comment_at_end(part) for part in parts]


def _without_comment_at_end(text: str) -> str:
    return text.partition("-- the end")[0].partition("/* ; */")[0].strip()


@given(_ANY)
def test_nothing_is_lost(text: str) -> None:
    """Every character but semicolons and what stands around them is in one of the statements, in order."""
    position = 0
    for statement in statements(text):
        position = text.index(statement, position) + len(statement)
        assert statement == statement.strip() != ""


_BLOCKS: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        st.just("SELECT 1;"),
        st.just("SELECT CASE WHEN a THEN end END, begin FROM t;"),
        st.just("SET x = CASE x WHEN 1 THEN 2 ELSE 3 END;"),
        _BODIES.map(lambda body: f"BEGIN {body} END;"),
        _BODIES.map(lambda body: f"l: BEGIN {body} END l;"),
        _BODIES.map(lambda body: f"IF x THEN {body} ELSE SELECT 1; END IF;"),
        _BODIES.map(lambda body: f"CASE x WHEN 1 THEN {body} END CASE;"),
        _BODIES.map(lambda body: f"WHILE x DO {body} END WHILE;"),
        _BODIES.map(lambda body: f"REPEAT {body} UNTIL x END REPEAT;"),
        _BODIES.map(lambda body: f"LOOP {body} END LOOP;"),
        _BODIES.map(lambda body: f"FOR r AS SELECT 1 DO {body} END FOR;"),
        _BODIES.map(lambda body: f"DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN {body} END;"),
    )
)
_BODIES: st.SearchStrategy[str] = st.lists(_BLOCKS, min_size=1, max_size=2).map(" ".join)


@settings(deadline=None, max_examples=60)
@given(_BODIES)
def test_a_compound_statement_stays_whole(body: str) -> None:
    for compound in (f"BEGIN {body} END", f"label: begin {body} end label"):
        assert statements(f"SELECT 1; {compound}; SELECT 2") == ["SELECT 1", compound, "SELECT 2"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;; -- nothing;\n /* nothing; */ ", []),
        ("SELECT 'it\\'s;'; SELECT 2", ["SELECT 'it\\'s;'", "SELECT 2"]),
        ("SELECT r'\\'; SELECT 2", ["SELECT r'\\'", "SELECT 2"]),
        ("SELECT bar'a;'; SELECT 2", ["SELECT bar'a;'", "SELECT 2"]),
        ("SELECT 1 -- to be \\\n continued; \n; SELECT 2", ["SELECT 1 -- to be \\\n continued;", "SELECT 2"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("SELECT 1 /* open; /* */ ; SELECT 2", ["SELECT 1 /* open; /* */ ; SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2;", ["BEGIN SELECT 1; SELECT 2;"]),
        ("SELECT begin FROM t; SELECT end FROM t", ["SELECT begin FROM t", "SELECT end FROM t"]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert statements(text) == expected


@pytest.mark.parametrize(
    ("statement", "target"),
    [
        ("INSERT INTO lake.db.t SELECT 1", "lake.db.t"),
        ("insert overwrite table `a b`.c values (1)", "`a b`.c"),
        ("INSERT INTO t (a, b) VALUES (1)", "t"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON 1 = 1", "t"),
        ("UPDATE lake.t SET a = 1", "lake.t"),
        ("DELETE FROM lake.db.t WHERE true", "lake.db.t"),
        ("CREATE TABLE IF NOT EXISTS a.b AS SELECT 1", "a.b"),
        ("CREATE OR REPLACE TABLE a.b USING iceberg AS SELECT 1", "a.b"),
        ("REPLACE TABLE t AS SELECT 1", "t"),
        ("WITH x AS (SELECT 1), y AS (SELECT 2) INSERT INTO lake.t SELECT * FROM x", "lake.t"),
        ("-- INSERT INTO x\n/* INSERT INTO y */ INSERT INTO z SELECT 1", "z"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", None),
        ("CREATE NAMESPACE n", None),
        ("INSERT INTO IDENTIFIER('a') SELECT 1", None),
        ("SELECT 'INSERT INTO t' FROM t", None),
        ("WITH x AS (SELECT 1) SELECT * FROM x", None),
        ("BEGIN INSERT INTO t SELECT 1; END", None),
        ("INSERT", None),
        ("", None),
    ],
)
def test_what_is_written_to(statement: str, target: str | None) -> None:
    assert target_of(statement) == target


@given(st.text(alphabet="INSERTOPDALCKW `'\".(),;-/*\n tx", max_size=60))
def test_any_text_has_a_target_or_none(text: str) -> None:
    found = target_of(text)
    assert found is None or found in text.replace(" ", "").replace("\n", "") or "`" in found


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT 1", True),
        ("-- what is there\nwith a AS (SELECT 1) SELECT * FROM a", True),
        ("SHOW TABLES IN lake.db", True),
        ("SELECT 'DELETE'", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", False),
        ("INSERT INTO t SELECT 1", False),
        ("CALL lake.system.expire_snapshots('db.t')", False),
        ("SET x = 1", False),
        ("BEGIN SELECT 1; END", False),
        ("", False),
    ],
)
def test_what_only_returns_rows(statement: str, *, expected: bool) -> None:
    assert is_query(statement) == expected
