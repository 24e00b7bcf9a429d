"""Dates and partitions as they are written: as Python writes them where it can, and one text for one partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import DateType, TimestampType, TimestamptzType

from dalsegno.iceberg.values import ends_of_unit, order_of, partition_path, said, said_unit

EPOCH = date(1970, 1, 1)
DAYS = st.integers(-(2**31), 2**31 - 1)
MOMENTS = st.integers(-(2**63), 2**63 - 1)


@given(st.dates())
def test_dates(day: date) -> None:
    assert said(DateType(), (day - EPOCH).days) == day.isoformat()


@given(st.datetimes())
def test_moments(moment: datetime) -> None:
    stored = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert said(TimestampType(), stored) == moment.isoformat()
    assert said(TimestamptzType(), stored) == f"{moment.isoformat()}+00:00"


def test_years_that_python_does_not_have() -> None:
    assert said(DateType(), 2932897) == "+10000-01-01"
    assert said(DateType(), -719529) == "-0001-12-31"
    assert said(DateType(), -719528) == "0000-01-01"
    assert said(DateType(), 2**31 - 1) == "+5881580-07-11"
    assert said(TimestamptzType(), 2**63 - 1) == "+294247-01-10T04:00:54.775807+00:00"
    assert said(TimestampType(), -(2**63)) == "-290308-12-21T19:59:05.224192"
    assert ends_of_unit(DateType(), "+5881580-07-11") is None


@given(MOMENTS, st.sampled_from(["year", "month", "day", "hour"]))
def test_units_hold_their_moments(moment: int, unit: str) -> None:
    days, hours = moment // 86_400_000_000, moment // 3_600_000_000
    year, month = (int(part) for part in said(DateType(), days).rsplit("-", 2)[:2])
    counted = {"day": days, "hour": hours, "year": year - 1970, "month": (year - 1970) * 12 + month - 1}[unit]
    ends = ends_of_unit(TimestampType(), said_unit(unit, counted))
    key = order_of("timestamp")
    if ends is not None:
        assert key(ends[0]) <= key(said(TimestampType(), moment)) < key(ends[1])


@given(DAYS, DAYS)
def test_order(one: int, other: int) -> None:
    key = order_of("date")
    assert (key(said(DateType(), one)) < key(said(DateType(), other))) == (one < other)


VALUES = st.none() | st.text(alphabet="a%/=_N") | st.sampled_from(["None", "null", "__HIVE_DEFAULT_PARTITION__", ""])


@given(st.dictionaries(st.text("b/=%", min_size=1), VALUES), st.dictionaries(st.text("b/=%", min_size=1), VALUES))
def test_a_path_stands_for_one_partition(one: dict[str, str | None], other: dict[str, str | None]) -> None:
    assert (partition_path(one) == partition_path(other)) == (list(one.items()) == list(other.items()))
