"""The fields of a local time, given in milliseconds since 1970 as if it were UTC. ISO 8601, without end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from dalsegno.sel.faults import Fault

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
HALF_DAY = 12 * HOUR
DAY = 24 * HOUR
WEEK = 7 * DAY
MONTH = int(30.436875 * DAY)
YEAR = int(365.2425 * DAY)
CENTURY = 100 * YEAR
SMALLEST_YEAR, LARGEST_YEAR = -292_275_054, 292_278_993
_FEBRUARY, _FEBRUARY_28 = 2, 59


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    return 29 if month == _FEBRUARY and is_leap(year) else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def day_number(year: int, month: int = 1, day: int = 1) -> int:
    """Days since 1970, by counting years from March so that the leap day is the last."""
    shifted = year - (month <= _FEBRUARY)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil(local: int) -> tuple[int, int, int]:
    """Year, month and day."""
    return _civil(local // DAY)


@lru_cache(maxsize=4096)
def _civil(number: int) -> tuple[int, int, int]:
    era, of_era = divmod(number + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9  # noqa: PLR2004 - March is 0
    return era * 400 + year_of_era + (month <= _FEBRUARY), month, day


def day_of_week(local: int) -> int:
    """Monday is 1."""
    return (local // DAY + 3) % 7 + 1


def week_year_start(week_year: int) -> int:
    """The Monday of the week with 4 January in it."""
    fourth = day_number(week_year, 1, 4) * DAY
    return fourth - (day_of_week(fourth) - 1) * DAY


def week_year(local: int) -> int:
    return civil(local - (day_of_week(local) - 4) * DAY)[0]


def weeks_in(year: int) -> int:
    return (week_year_start(year + 1) - week_year_start(year)) // WEEK


def _year(local: int) -> int:
    return civil(local)[0]


def _day_of_year(local: int) -> int:
    return local // DAY - day_number(_year(local)) + 1


def _set_year(local: int, year: int) -> int:
    """The same day of the other year; 29 February becomes the 28th."""
    own, of_year = _year(local), _day_of_year(local)
    if of_year > _FEBRUARY_28:
        of_year += is_leap(year) - is_leap(own)
    return (day_number(year) + of_year - 1) * DAY + local % DAY


def _set_month(local: int, month: int) -> int:
    year, _, day = civil(local)
    return day_number(year, month, min(day, days_in_month(year, month))) * DAY + local % DAY


def add_months(local: int, count: int) -> int:
    year, month, day = civil(local)
    years, months = divmod(month - 1 + count, 12)
    target = year + years
    if not SMALLEST_YEAR <= target <= LARGEST_YEAR:
        raise Fault(f"the year {target} is out of range")
    first = day_number(target, months + 1)
    return (first + min(day, days_in_month(target, months + 1)) - 1) * DAY + local % DAY


def _set_week_year(local: int, year: int) -> int:
    week = min(_week(local), weeks_in(year))
    return week_year_start(year) + (week - 1) * WEEK + (day_of_week(local) - 1) * DAY + local % DAY


def _week(local: int) -> int:
    return (local - week_year_start(week_year(local))) // WEEK + 1


def _year_of_era(local: int) -> int:
    year = _year(local)
    return year if year > 0 else 1 - year


@dataclass(frozen=True)
class Field:
    """One field: how to read it, set it, and cut everything smaller off."""

    name: str
    #: How long one of it is, and how long what it counts within is, in milliseconds; None for eras, without end.
    unit: int
    within: int | None
    get: Callable[[int], int]
    put: Callable[[int, int], int]
    floor: Callable[[int], int]
    smallest: int
    largest: Callable[[int], int]

    def set(self, local: int, value: int) -> int:
        largest = self.largest(local)
        if not self.smallest <= value <= largest:
            raise Fault(f"{self.name} must be between {self.smallest} and {largest}, not {value}")
        return self.put(local, value)


def _regular(name: str, unit: int, within: int, first: int = 0) -> Field:
    """A field that counts equal units within equal spans. Counted from 1, the last stands for 0: 24 o'clock."""
    count = within // unit

    def get(local: int) -> int:
        return local % within // unit or (count if first else 0)

    def put(local: int, value: int) -> int:
        return local + (value % count - local % within // unit) * unit

    return Field(name, unit, within, get, put, _flooring(unit), first, lambda _: count - 1 + first)


def _flooring(unit: int) -> Callable[[int], int]:
    return lambda local: local // unit * unit


def _moving(get: Callable[[int], int], unit: int) -> Callable[[int, int], int]:
    return lambda local, value: local + (value - get(local)) * unit


def _first_of_year(local: int) -> int:
    return day_number(_year(local)) * DAY


def _day_of_month(local: int) -> int:
    return civil(local)[2]


_ALL = (
    Field("year", YEAR, None, _year, _set_year, _first_of_year, SMALLEST_YEAR, lambda _: LARGEST_YEAR),
    Field(
        "yearOfEra",
        YEAR,
        None,
        _year_of_era,
        lambda local, value: _set_year(local, value if _year(local) > 0 else 1 - value),
        _first_of_year,
        1,
        lambda _: LARGEST_YEAR,
    ),
    Field(
        "centuryOfEra",
        CENTURY,
        None,
        lambda local: _year_of_era(local) // 100,
        lambda local, value: _set_year(local, value * 100 + _year_of_era(local) % 100),
        lambda local: day_number(_year(local) // 100 * 100) * DAY,
        0,
        lambda _: LARGEST_YEAR // 100,
    ),
    Field(
        "weekyear",
        YEAR,
        None,
        week_year,
        _set_week_year,
        lambda local: week_year_start(week_year(local)),
        SMALLEST_YEAR,
        lambda _: LARGEST_YEAR,
    ),
    Field(
        "monthOfYear",
        MONTH,
        YEAR,
        lambda local: civil(local)[1],
        _set_month,
        lambda local: local // DAY * DAY - (_day_of_month(local) - 1) * DAY,
        1,
        lambda _: 12,
    ),
    Field(
        "weekOfWeekyear",
        WEEK,
        YEAR,
        _week,
        _moving(_week, WEEK),
        lambda local: local // DAY * DAY - (day_of_week(local) - 1) * DAY,
        1,
        lambda local: weeks_in(week_year(local)),
    ),
    Field("dayOfWeek", DAY, WEEK, day_of_week, _moving(day_of_week, DAY), _flooring(DAY), 1, lambda _: 7),
    Field(
        "dayOfYear",
        DAY,
        YEAR,
        _day_of_year,
        _moving(_day_of_year, DAY),
        _flooring(DAY),
        1,
        lambda local: 365 + is_leap(_year(local)),
    ),
    Field(
        "dayOfMonth",
        DAY,
        MONTH,
        _day_of_month,
        _moving(_day_of_month, DAY),
        _flooring(DAY),
        1,
        lambda local: days_in_month(*civil(local)[:2]),
    ),
    _regular("halfdayOfDay", HALF_DAY, DAY),
    _regular("hourOfHalfday", HOUR, HALF_DAY),
    _regular("clockhourOfHalfday", HOUR, HALF_DAY, first=1),
    _regular("hourOfDay", HOUR, DAY),
    _regular("clockhourOfDay", HOUR, DAY, first=1),
    _regular("minuteOfDay", MINUTE, DAY),
    _regular("minuteOfHour", MINUTE, HOUR),
    _regular("secondOfDay", SECOND, DAY),
    _regular("secondOfMinute", SECOND, MINUTE),
    _regular("millisOfDay", 1, DAY),
    _regular("millisOfSecond", 1, SECOND),
)
FIELDS = {field.name: field for field in _ALL}
