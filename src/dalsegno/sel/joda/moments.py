"""DateTime, its Property, and Days."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.calendar import (
    DAY,
    FIELDS,
    HOUR,
    MINUTE,
    SECOND,
    SMALLEST_YEAR,
    WEEK,
    add_months,
    civil,
    day_number,
    days_in_month,
)
from dalsegno.sel.joda.zones import UTC_ZONE, Zone, offset_text

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
MONTH_NAMES = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
#: Units that are added to the moment itself, whatever clocks do meanwhile.
_ON_MOMENT = {"Hours": HOUR, "Minutes": MINUTE, "Seconds": SECOND, "Millis": 1}
_ON_LOCAL = {"Weeks": WEEK, "Days": DAY}


@dataclass(frozen=True)
class Moment:
    """A DateTime: milliseconds since 1970, seen from a zone."""

    millis: int
    zone: Zone = UTC_ZONE

    def __post_init__(self) -> None:
        if not _SMALLEST <= self.millis <= _LARGEST:
            raise Fault("the time is out of range")

    @property
    def local(self) -> int:
        return self.millis + self.zone.offset(self.millis)

    def field(self, name: str) -> int:
        return FIELDS[name].get(self.local)

    def with_field(self, name: str, value: int) -> Moment:
        local = FIELDS[name].set(self.local, value)
        moment = Moment(self.zone.from_local_near(local, self.millis), self.zone)
        if moment.field(name) != value:
            raise Fault(f"{name} {value} does not exist here in {self.zone}: clocks were put forward over it")
        return moment

    def plus(self, unit: str, count: int) -> Moment:
        """Years, Months, Weeks, Days, Hours, Minutes, Seconds or Millis."""
        if unit in _ON_MOMENT:
            return Moment(self.millis + count * _ON_MOMENT[unit], self.zone)
        if count == 0:
            return self
        if unit in _ON_LOCAL:
            local = self.local + count * _ON_LOCAL[unit]
        elif unit == "Months":
            local = add_months(self.local, count)
        else:
            local = FIELDS["year"].set(self.local, self.field("year") + count)
        return Moment(self.zone.from_local(local), self.zone)

    def in_zone(self, zone: Zone) -> Moment:
        return Moment(self.millis, zone)

    def start_of_day(self) -> Moment:
        """The first moment of the day, which is not midnight where clocks are put forward at midnight."""
        midnight = self.local // DAY * DAY
        morning = self.zone.from_local_near(midnight + 6 * HOUR)
        return Moment(min(self.zone.from_local_near(midnight, morning), self.zone.from_local(midnight)), self.zone)

    def __str__(self) -> str:
        year, month, day = civil(self.local)
        of_day = self.local % DAY
        offset = self.zone.offset(self.millis)
        written = f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"
        time = f"{of_day // HOUR:02}:{of_day // MINUTE % 60:02}:{of_day // SECOND % 60:02}.{of_day % SECOND:03}"
        return f"{written}T{time}{offset_text(offset, colon=True, fields=4) if offset else 'Z'}"


def moment_of(fields: list[int], zone: Zone) -> Moment:
    """From year, month, day, hour, minute, second and millisecond."""
    year, month, day, hour, minute, second, millis = fields
    if not SMALLEST_YEAR <= year <= -SMALLEST_YEAR or not 1 <= month <= 12:  # noqa: PLR2004
        raise Fault(f"{year}-{month} is not a month")
    for name, value, largest, smallest in (
        ("dayOfMonth", day, days_in_month(year, month), 1),
        ("hourOfDay", hour, 23, 0),
        ("minuteOfHour", minute, 59, 0),
        ("secondOfMinute", second, 59, 0),
        ("millisOfSecond", millis, 999, 0),
    ):
        if not smallest <= value <= largest:
            raise Fault(f"{name} must be between {smallest} and {largest}, not {value}")
    local = day_number(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + millis
    return Moment(zone.from_local_strictly(local), zone)


@dataclass(frozen=True)
class Property:
    """One field of a moment."""

    moment: Moment
    name: str

    def __str__(self) -> str:
        return f"Property[{self.name}]"

    @property
    def value(self) -> int:
        return self.moment.field(self.name)

    @property
    def text(self) -> str:
        if self.name == "monthOfYear":
            return MONTH_NAMES[self.value - 1]
        if self.name == "dayOfWeek":
            return DAY_NAMES[self.value - 1]
        return str(self.value)

    @property
    def smallest(self) -> Moment:
        try:
            return self.moment.with_field(self.name, FIELDS[self.name].smallest)
        except Fault:  # clocks are put forward at midnight
            return self.moment.start_of_day()

    @property
    def largest(self) -> Moment:
        return self.moment.with_field(self.name, FIELDS[self.name].largest(self.moment.local))


@dataclass(frozen=True)
class Days:
    """So many whole days."""

    count: int

    def __str__(self) -> str:
        return f"P{self.count}D"


def days_between(start: Moment, end: Moment) -> Days:
    """Whole days by the start's calendar: a day on which clocks change is one day all the same."""
    sign = 1 if end.millis >= start.millis else -1
    count = abs(end.in_zone(start.zone).local - start.local) // DAY + 1
    while count > 0 and (start.plus("Days", sign * count).millis - end.millis) * sign > 0:
        count -= 1
    return Days(sign * count)
