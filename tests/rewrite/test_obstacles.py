"""What is not incremental, and what a query must not be: each with its operator, its place, and what would help."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dalsegno.errors import UserError
from dalsegno.rewrite.analysis import analyse
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.keys import NotProven, key_of, touched
from dalsegno.rewrite.relations import scans_in
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Change, PartitionField, Reading, Table

FACTS = Table(
    ("lake", "db", "facts"),
    {"id": "int", "day": "date", "kind": "string", "v": "int", "x": "double", "c": "char(3)", "at": "timestamp"}
    | {"folded": "string collate UTF8_LCASE"},
)
DIMS = Table(("lake", "db", "dims"), {"dim": "int", "name": "string", "id": "string"})

AGGREGATES = [
    *("any", "any_value", "approx_count_distinct", "approx_percentile", "approx_top_k", "array_agg", "avg", "bit_and"),
    *("bit_or", "bit_xor", "bitmap_construct_agg", "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "corr"),
    *("collect_set", "count", "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "kurtosis"),
    *("first_value", "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "last", "last_value", "listagg", "max"),
    *("max_by", "mean", "median", "min", "min_by", "mode", "percentile", "percentile_approx", "regr_avgx", "regr_r2"),
    *("regr_avgy", "regr_count", "regr_intercept", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness"),
    *("schema_of_variant_agg", "some", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum", "try_avg"),
    *("try_sum", "var_pop", "var_samp", "variance", "theta_sketch_agg", "measure"),
]


def why_full(query: str, changed: Table = FACTS) -> str:
    """Why nothing but a full computation is right."""
    analysis = analyse(query, [FACTS, DIMS], current=("lake", "db"))
    target = Table(("lake", "db", "target"), {name: analysis.kind(name) or "string" for name in analysis.outputs})
    found = {each.name: each for each in strategies_for(analysis, target, {changed.name: Changed.ANY})}
    possible = [name for name, each in found.items() if each.is_possible]
    assert possible == [StrategyName.FULL], possible
    return found[StrategyName.KEYS].why


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        ("SELECT kind, count(*) AS n\nFROM facts GROUP BY kind WITH ROLLUP", "ROLLUP (line 2"),
        ("SELECT kind, day, count(*) AS n FROM facts GROUP BY CUBE(kind, day)", "CUBE (line 1, column 58)"),
        ("SELECT kind, count(*) AS n FROM facts GROUP BY GROUPING SETS ((kind), ())", "GROUPING SETS"),
        ("SELECT id FROM facts WHERE v > (SELECT max(v) FROM facts)", "subquery (line 1, column"),
        ("SELECT id FROM facts LIMIT 10", "LIMIT (line 1, column 28)"),
        ("SELECT id FROM facts TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT id, sum(v) OVER () AS s FROM facts", "window sum"),
        ("SELECT id, sum(v) OVER (ORDER BY id) AS s FROM facts", "window sum"),
        ("SELECT kind, first(v) AS v FROM facts GROUP BY kind", "first"),
        ("SELECT kind, any_value(v) AS v FROM facts GROUP BY kind", "any_value"),
        ("SELECT kind, collect_list(v) AS v FROM facts GROUP BY kind", "array_agg"),
        ("SELECT kind, approx_count_distinct(v) AS v FROM facts GROUP BY kind", "approx"),
        ("SELECT kind, max_by(v, id) AS v FROM facts GROUP BY kind", ""),
        ("SELECT id, _file AS f FROM facts", "column _file (line 1, column 12)"),
        ("SELECT my_udf(id) AS id FROM facts", "my_udf (line 1, column 8)"),
        ("SELECT f.id FROM dims RIGHT JOIN facts f ON f.kind = dims.name", "RIGHT JOIN"),
        ("SELECT f.id FROM dims FULL OUTER JOIN facts f ON f.kind = dims.name", "FULL OUTER JOIN"),
        ("SELECT kind FROM facts EXCEPT SELECT name FROM dims", "EXCEPT"),
        ("SELECT kind FROM facts INTERSECT SELECT name FROM dims", "INTERSECT"),
        ("SELECT id FROM facts VERSION AS OF 5", "VERSION AS OF"),
        ("SELECT id, kind FROM facts NATURAL JOIN dims", "NATURAL JOIN"),
        ("SELECT c, count(*) AS n FROM facts GROUP BY c", "SELECT"),
        ("SELECT x, count(*) AS n FROM facts GROUP BY x", "SELECT"),
        ("SELECT folded, count(*) AS n FROM facts GROUP BY folded", "SELECT"),
        ("SELECT upper(c) AS u, count(*) AS n FROM facts GROUP BY upper(c)", ""),
        ("SELECT any(v > 1) AS a FROM facts", "any (line 1"),
        ("SELECT struct(*) AS a FROM facts", "* (line 1, column 15)"),
        ("SELECT id FROM facts QUALIFY row_number() OVER (PARTITION BY id ORDER BY v) = 1", "QUALIFY"),
        ("WITH RECURSIVE r AS (SELECT id FROM facts UNION ALL SELECT id FROM r) SELECT id FROM r", "WITH RECURSIVE"),
        ("SELECT id FROM facts UNION ALL SELECT id FROM dims", "exact type"),
        ("SELECT v + 1 AS w, count(*) AS n FROM facts GROUP BY v + 1", ""),
    ],
)
def test_what_is_not_incremental(query: str, operator: str) -> None:
    assert operator in why_full(query)


def test_not_in_over_what_changed() -> None:
    """One NULL in the subquery changes every row."""
    assert "subquery (line 1, column 48)" in why_full(
        "SELECT id FROM facts WHERE kind NOT IN (SELECT name FROM dims)", DIMS
    )


def test_key_from_the_nullable_side() -> None:
    why = why_full("SELECT f.kind FROM dims LEFT JOIN facts f ON f.kind = dims.name")
    assert "LEFT JOIN: the key comes from its nullable side" in why


def test_missing_rows_connect_nothing() -> None:
    """Two tables that are only joined with the same outer-joined one have nothing to do with each other."""
    query = "SELECT a.id, b.name FROM facts a CROSS JOIN dims b LEFT JOIN facts n ON n.id = a.id AND n.kind = b.name"
    root = analyse(query, [FACTS, DIMS], current=("lake", "db")).root
    (scan,) = (scan for scan in scans_in(root) if scan.table is DIMS)
    with pytest.raises(NotProven):
        touched(root, key_of(root, ["id"]), scan)


def test_join_by_an_implicit_cast() -> None:
    why = why_full("SELECT f.v, count(*) AS n FROM facts f LEFT JOIN dims d ON d.id = f.id GROUP BY f.v", DIMS)
    assert "no equality of columns of one type" in why


@pytest.mark.parametrize(
    ("query", "operator"),
    [
        ("SELECT id, current_date() AS today FROM facts", "current_date (line 1, column 12)"),
        ("SELECT id FROM facts WHERE at > now() - INTERVAL 1 DAY", "now (line 1, column 33)"),
        ("SELECT id, rand() AS r FROM facts", "rand"),
        ("SELECT id, uuid() AS r FROM facts", "uuid"),
        ("SELECT id FROM facts WHERE day = current_date", "current_date"),
        ("SELECT id FROM facts WHERE day > ${DATE_MINUS_7}", "parameter"),
        ("SELECT id FROM facts WHERE day > date_sub(current_date(), 7)", "current_date"),
        ("SELECT id FROM facts WHERE day = date' Today'", "' Today' (line 1, column"),
        ("SELECT id,\ncurrent_timestamp AS c FROM facts", "current_timestamp (line"),
    ],
)
def test_what_is_refused(query: str, operator: str) -> None:
    analysis = analyse(query, [FACTS], current=("lake", "db"))
    assert any(operator in str(each) for each in analysis.refusals), analysis.obstacles
    target = Table(("t",), {name: "int" for name in analysis.outputs})
    assert not any(each.is_possible for each in strategies_for(analysis, target, {FACTS.name: Changed.APPENDED}))


@pytest.mark.parametrize(
    "condition",
    [
        "day >= date_sub(current_date(), 7)",
        "current_date() - 7 <= day",
        "day BETWEEN ${FROM} AND ${TO}",
        "day > ${DATE_MINUS_7}",
    ],
)
def test_lookbacks_are_recognised(condition: str) -> None:
    (found,) = analyse(f"SELECT id FROM facts\nWHERE v > 1 AND {condition}", [FACTS], current=("lake", "db")).lookbacks
    assert (found.column, found.place.line if found.place else 0) == ("day", 2)
    assert "Remove it" in str(found)


def test_fixed_filters_are_not_lookbacks() -> None:
    analysis = analyse("SELECT id FROM facts WHERE day >= DATE'2026-01-01'", [FACTS], current=("lake", "db"))
    assert not analysis.lookbacks and not analysis.obstacles


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "empty"),
        ("SELECT 1 AS a; SELECT 2 AS b", "several statements"),
        ("SELECT FROM WHERE", "cannot be parsed"),
        ("DELETE FROM facts", "not a SELECT"),
        ("SELECT id FROM unknown", "reads unknown (line 1, column 16)"),
        ("SELECT count(*) FROM facts", "no name"),
        ("SELECT id, v AS id FROM facts", "two columns called 'id'"),
        ("SELECT id, * FROM facts", "two columns called 'id'"),
        ("SELECT * EXCEPT (id) FROM facts", "EXCEPT is not expanded"),
        ("SELECT id FROM IDENTIFIER('facts')", "no name in its text (line 1, column"),
    ],
)
def test_mistakes(query: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace("(", r"\(").replace(")", r"\)")):
        analyse(query, [FACTS], current=("lake", "db"))


def test_barriers_matter_only_to_what_is_behind_them() -> None:
    """A changed dimension is followed, though facts are behind a LIMIT."""
    query = "SELECT d.name, f.n FROM dims d JOIN (SELECT kind, 1 AS n FROM facts LIMIT 3) f ON f.kind = d.name"
    analysis = analyse(query, [FACTS, DIMS], current=("lake", "db"))
    target = Table(("t",), {"name": "string", "n": "int"})
    of_dims = {each.name for each in strategies_for(analysis, target, {DIMS.name: Changed.ANY}) if each.is_possible}
    of_facts = {each.name for each in strategies_for(analysis, target, {FACTS.name: Changed.ANY}) if each.is_possible}
    assert StrategyName.KEYS in of_dims
    assert of_facts == {StrategyName.FULL}


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_of_spark_is_known(name: str) -> None:
    """One that is taken for a function of a row would be appended."""
    arguments = "v, id" if name.startswith(("regr", "corr", "covar", "max_", "min_")) else "v"
    query = f"SELECT {name}({arguments}) AS x FROM facts"
    analysis = analyse(query, [FACTS], current=("lake", "db"), deterministic=[name])
    target = Table(("t",), {"x": "double"})
    found = {each.name for each in strategies_for(analysis, target, {FACTS.name: Changed.APPENDED}) if each.is_possible}
    assert StrategyName.APPEND not in found


def test_declared_functions() -> None:
    query = "SELECT id, my_udf(v) AS w FROM facts"
    analysis = analyse(query, [FACTS], current=("lake", "db"), deterministic=["MY_UDF"])
    assert not analysis.obstacles


def test_ties_are_facts() -> None:
    numbered = "SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM facts"
    query = f"SELECT id, v FROM ({numbered}) WHERE n = 1"
    analysis = analyse(query, [FACTS], current=("lake", "db"))
    target = Table(("t",), {"id": "int", "v": "int"})
    keys = next(
        each for each in strategies_for(analysis, target, {FACTS.name: Changed.ANY}) if each.name is StrategyName.KEYS
    )
    assert [str(fact) for fact in keys.facts] == ["no ties in the ORDER BY of row_number"]
    assert keys.key == ("id",)


def offered(query: str, target: Table, options: Options | None = None) -> dict[StrategyName, Strategy]:
    analysis = analyse(query, [FACTS, DIMS], current=("lake", "db"), kinds=target.columns)
    return {each.name: each for each in strategies_for(analysis, target, {FACTS.name: Changed.ANY}, options)}


def test_declared_keys() -> None:
    query, target = "SELECT id, kind, x FROM facts", Table(("t",), {"id": "int", "kind": "string", "x": "double"})
    assert offered(query, target)[StrategyName.KEYS].key == ("id", "kind")
    assert offered(query, target, Options(keys=("ID",)))[StrategyName.KEYS].key == ("id",)
    inexact = offered(query, target, Options(keys=("x",)))[StrategyName.KEYS]
    assert not inexact.is_possible and "x is not known, or not exact" in inexact.why
    with pytest.raises(UserError, match="nothing is declared as a key"):
        offered(query, target, Options(keys=("nothing",)))


def test_trusted_probes() -> None:
    query = (
        "SELECT id, v FROM (SELECT id, v, row_number() OVER (PARTITION BY id ORDER BY at) AS n FROM facts) WHERE n = 1"
    )
    analysis = analyse(query, [FACTS], current=("lake", "db"))
    target = Table(("t",), {"id": "int", "v": "int"})
    for options in (Options(), Options(trusted=frozenset({StrategyName.NEW_KEYS}))):
        found = {each.name: each for each in strategies_for(analysis, target, {FACTS.name: Changed.APPENDED}, options)}
        assert found[StrategyName.NEW_KEYS].is_always_correct == bool(options.trusted)
    assert found[StrategyName.NEW_KEYS].facts[-1] == Fact(FactKind.PROBE, is_trusted=True)


def test_a_key_that_the_target_stores_differently() -> None:
    """Two values of the query may be one of the target, so none of its rows could be replaced by the key."""
    target = Table(("t",), {"at": "date", "n": "bigint"})
    analysis = analyse("SELECT at, count(*) AS n FROM facts GROUP BY at", [FACTS], current=("lake", "db"))
    keys = {each.name: each for each in strategies_for(analysis, target, {FACTS.name: Changed.ANY})}[StrategyName.KEYS]
    assert not keys.is_possible


def test_columns_of_the_target() -> None:
    with pytest.raises(UserError, match="the query lacks more; the table lacks kind"):
        offered("SELECT id, kind FROM facts", Table(("t",), {"id": "int", "more": "string"}))


def test_reserved_names() -> None:
    with pytest.raises(UserError, match="_dalsegno_old"):
        offered("SELECT id AS _dalsegno_old FROM facts", Table(("t",), {"_dalsegno_old": "int"}))


@pytest.mark.parametrize(
    ("source", "target", "is_aligned"),
    [
        ("identity", "identity", True), ("identity", "day", True), ("identity", "month", False), ("day", "day", True),
        ("day", "hour", True), ("month", "day", True), ("hour", "day", False), ("bucket[4]", "bucket[4]", False),
        ("day", "identity", True), ("identity", "bucket[4]", False),
    ],
)  # fmt: skip
def test_partitions_that_are_made_of_whole_ones(source: str, target: str, is_aligned: bool) -> None:
    facts = replace(FACTS, partitions=(PartitionField("day", source),))
    analysis = analyse("SELECT day, count(*) AS n FROM facts GROUP BY day", [facts], current=("lake", "db"))
    into = Table(("t",), {"day": "date", "n": "bigint"}, (PartitionField("day", target),))
    found = {each.name: each for each in strategies_for(analysis, into, {facts.name: Changed.ANY})}
    assert found[StrategyName.PARTITIONS].is_possible == is_aligned


def test_a_day_of_a_time_is_not_its_partition() -> None:
    """``date(at)`` goes by the session's zone, ``days(at)`` by UTC."""
    facts = replace(FACTS, partitions=(PartitionField("at", "day"),))
    analysis = analyse("SELECT date(at) AS day, count(*) AS n FROM facts GROUP BY 1", [facts], current=("lake", "db"))
    into = Table(("t",), {"day": "date", "n": "bigint"}, (PartitionField("day"),))
    found = {each.name: each for each in strategies_for(analysis, into, {facts.name: Changed.ANY})}
    assert not found[StrategyName.PARTITIONS].is_possible
    assert found[StrategyName.KEYS].key == ("day",)


def test_analysis_is_fast() -> None:
    query = "SELECT kind, count(*) AS n FROM facts JOIN dims ON dims.name = facts.kind GROUP BY kind"
    target = Table(("t",), {"kind": "string", "n": "bigint"})
    offered(query, target)
    begun = time.process_time()
    for _ in range(10):
        offered(query, target)
    assert (time.process_time() - begun) / 10 < 0.05


def test_nothing_changed() -> None:
    """Spark cannot plan a MERGE that is ON false."""
    found = offered(
        "SELECT kind, count(*) AS n FROM facts GROUP BY kind", Table(("t",), {"kind": "string", "n": "bigint"})
    )
    change = Change("a", "b", "c", "d", partition_filter="false")
    for strategy in found.values():
        if strategy.is_possible:
            statements = strategy.statements(Reading({FACTS.name: change}))
            assert bool(statements) == (strategy.name is StrategyName.FULL)
