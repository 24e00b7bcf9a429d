"""Lists for people: aligned whatever the cells hold, and cut on terminals only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.cli import tables
from dalsegno.cli.tables import cut, table, width

#: Characters that a terminal shows in no, one or two columns, and some that it must not see.
TEXT = st.text(st.sampled_from("aZ9 é字ﬀ한\u0301\u200d😀\n\t\x1b\x7f"), max_size=12)


def test_headers_and_columns() -> None:
    rows = [("daily", 7, "done"), ("字", 1234567, None)]
    assert table(("NAME", "ROWS", "HOW"), rows).splitlines() == [
        "NAME        ROWS  HOW",
        "daily          7  done",
        "字     1,234,567  -",
    ]


def test_an_empty_list_is_a_sentence() -> None:
    assert table(("NAME",), [], empty="There are no runs.") == "There are no runs."


def test_columns_without_text_are_left_out_unless_they_are_data() -> None:
    assert table(("A", "B", "C"), [("1", "", "2")]) == "A  C\n1  2"
    assert table(("A", "B", "C"), [("1", "", "2")], keeps_empty_columns=True) == "A  B  C\n1     2"


def test_a_row_is_a_line_whatever_a_name_holds() -> None:
    assert table(("NAME",), [("a\nb\x1b[31m\r",)]) == "NAME\na\\nb\\u001b[31m\\u000d"


@given(st.lists(st.tuples(TEXT, st.one_of(st.integers(), st.none()), TEXT), min_size=1, max_size=5))
def test_columns_start_at_one_place(rows: list[tuple[str, int | None, str]]) -> None:
    lines = table(("FIRST", "NUMBER", "LAST"), [(first, number, f"|{last}") for first, number, last in rows])
    starts = {width(line.partition("|")[0]) for line in lines.splitlines()[1:]}
    assert len(starts) == 1
    assert len(lines.splitlines()) == len(rows) + 1


@given(TEXT, st.integers(min_value=1, max_value=20))
def test_a_text_is_cut_to_what_fits(text: str, most: int) -> None:
    found = cut(text, most)
    assert width(found) <= most
    assert found == text if width(text) <= most else found.endswith("…")
    assert text.startswith(found.removesuffix("…"))


def test_a_terminal_is_not_overrun_and_the_first_column_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("the/run/that/counts", "x" * 50, "y" * 30, "2026")]
    wide = table(("RUN", "REASON", "TABLE", "YEAR"), rows)
    assert "x" * 50 in wide, "a pipe gets everything"
    monkeypatch.setattr(tables, "terminal_width", lambda: 60)
    shown = table(("RUN", "REASON", "TABLE", "YEAR"), rows).splitlines()
    assert all(width(line) <= 60 for line in shown)
    assert shown[1].startswith("the/run/that/counts  xxx") and shown[1].endswith("…  2026")
    monkeypatch.setattr(tables, "terminal_width", lambda: 10)
    assert all(width(line) <= 10 for line in table(("RUN", "REASON"), [("r" * 30, "x" * 30)]).splitlines())
