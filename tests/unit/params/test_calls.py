"""``${capture.partition_filter('t')}``: predicates about a table that has an alias."""

from __future__ import annotations

import pytest

from dalsegno.errors import ParamError
from dalsegno.spec.params.literals import interpolate, references, uses
from dalsegno.steps.references import as_variables

FILTER = r"(`event_day` IN (DATE'2026-11-01', DATE'2026-11-02') AND `c` = 'it\'s `odd` = \\')"
VALUES = {
    "capture.partition_filter": FILTER,
    "nested": "`place`.`land` = 'x'",
    "odd": "`a``b` IS NULL",
    "all": "true",
    "rows": "17",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ON ${capture.partition_filter}", f"ON {FILTER}"),
        (
            "ON ${capture.partition_filter('t')} AND",
            r"ON (t.`event_day` IN (DATE'2026-11-01', DATE'2026-11-02') AND t.`c` = 'it\'s `odd` = \\') AND",
        ),
        (
            "${capture.partition_filter( \"t\" , 'event_day = day')}",
            r"(t.`day` IN (DATE'2026-11-01', DATE'2026-11-02') AND t.`c` = 'it\'s `odd` = \\')",
        ),
        ("${nested('place=spot')}", "`spot`.`land` = 'x'"),
        ("${nested('s', 'land=other')}", "s.`place`.`land` = 'x'"),
        ("${odd('t')}", "t.`a``b` IS NULL"),
        ("${all('t', 'a=b')}", "true"),
        ("$${all('t')}", "${all('t')}"),
    ],
)
def test_calls(text: str, expected: str) -> None:
    assert interpolate(text, VALUES.__getitem__) == expected


@pytest.mark.parametrize(
    "arguments",
    ["", "t", "'t.u'", "'t; DROP TABLE x'", "'t`'", "'t', 'u'", "'a=b', 't'", "'t', 'a=b c'", "'t',", "'ä'", "'a=b=c'"],
)
def test_anything_but_plain_names_is_refused(arguments: str) -> None:
    with pytest.raises(ParamError, match="expected a table's alias") as refused:
        interpolate(f"${{all({arguments})}}", VALUES.__getitem__)
    assert "${all('t')}" in (refused.value.hint or "")


def test_what_is_no_predicate_is_refused() -> None:
    with pytest.raises(ParamError, match="'rows' is not a predicate"):
        interpolate("${rows('t')}", VALUES.__getitem__)


def test_calls_are_references() -> None:
    text = "${all('t')} $rows ${all('u')} ${all} ${all('t')}"
    assert references(text) == ["all", "rows"]
    assert [reference.written for reference in uses(text)] == ["all('t')", "rows", "all('u')", "all"]


def test_in_a_shell_script_they_are_variables() -> None:
    script, variables = as_variables("""echo "${all('t')}" ${all}""", {"all('t')": "true", "all": "true"})
    assert script == 'echo "${DALSEGNO_REFERENCE_1}" ${all}'
    assert variables == {"DALSEGNO_REFERENCE_1": "true", "all": "true"}
