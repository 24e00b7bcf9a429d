"""Reading moments: with a pattern, or as ISO 8601."""

from __future__ import annotations

import re
from dataclasses import dataclass
from dataclasses import field as made

from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.calendar import DAY, FIELDS, MONTH, Field
from dalsegno.sel.joda.moments import DAY_NAMES, MONTH_NAMES, Moment
from dalsegno.sel.joda.patterns import YEARS, Part, Pattern
from dalsegno.sel.joda.zones import OFFSET_PATTERN, UTC_ZONE, Zone, offset_of, zone, zone_ids

_NAMES = {"monthOfYear": MONTH_NAMES, "dayOfWeek": DAY_NAMES, "halfdayOfDay": ["AM", "PM"]}
#: The year of a day without one: a leap year, so that 29 February can be read.
_YEAR_OF_DAYS = 2000
_ZONE_NAMES = {
    "UT": "UTC",
    "UTC": "UTC",
    "GMT": "UTC",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
}
_ISO = re.compile(
    r"(?:([+-]?\d{1,9})(?:-(\d{1,2})(?:-(\d{1,2}))?|-(\d{3})|-W(\d{1,2})(?:-(\d))?)?)?"
    r"(?:T(?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d(?::?\d\d(?:[.,]?\d{1,3})?)?)?)?)?",
    re.ASCII,
)


@dataclass
class _Reading:
    """What was read so far."""

    text: str
    position: int = 0
    fields: list[tuple[str, int]] = made(default_factory=list)
    offset: int | None = None
    zone: Zone | None = None

    def moment(self, default: Zone) -> Moment:
        local = _combined(self.fields)
        seen = self.zone or default
        return Moment(local - self.offset if self.offset is not None else seen.from_local_strictly(local), seen)


def _combined(found: list[tuple[str, int]]) -> int:
    """The local time of these fields: from the largest to the smallest, each cutting off what lies below it."""
    ordered = sorted(((FIELDS[name], value) for name, value in found), key=_largest_first)
    if ordered and DAY <= ordered[0][0].unit <= MONTH:
        ordered.insert(0, (FIELDS["year"], _YEAR_OF_DAYS))
    local = 0
    for each, value in ordered:
        local = each.floor(each.set(local, value))
    for each, value in ordered:
        local = each.set(local, value)
    return ordered[-1][0].floor(local) if ordered else local


def _largest_first(item: tuple[Field, int]) -> tuple[float, int]:
    each, _ = item
    return (float("-inf") if each.within is None else -each.within, -each.unit)


def read(formatter: Pattern, text: str, *, this_year: int) -> Moment:
    """The moment that the text says by the pattern. Two-digit years are near this one."""
    reading = _Reading(text)
    for part in formatter.parts:
        if not _read_part(part, reading, this_year):
            shown = text[reading.position : reading.position + 20]
            raise Fault(f"'{text:.60}' is not written as {formatter.source:.60}: see '{shown}'")
    if reading.position < len(text):
        raise Fault(f"'{text:.60}' goes on after {formatter.source:.60}: see '{text[reading.position :]:.20}'")
    moment = reading.moment(formatter.zone or UTC_ZONE)
    return moment if formatter.zone is None else moment.in_zone(formatter.zone)


def _read_part(part: Part, reading: _Reading, this_year: int) -> bool:  # noqa: PLR0911 - one for each kind
    if not part.letter:
        end = reading.position + len(part.text)
        if reading.text[reading.position : end].lower() != part.text.lower():
            return False
        reading.position = end
        return True
    if part.letter == "G":
        return _read_name(reading, "", ["BC", "AD"])
    if part.letter in "zZ":
        return _read_zone(part, reading)
    if part.is_name:
        return _read_name(reading, part.field, _NAMES[part.field])
    if part.letter in YEARS and part.count == 2:  # noqa: PLR2004 - yy
        return _read_two_digits(part, reading, this_year)
    if part.letter == "S":
        return _read_fraction(part, reading)
    return _read_number(part, reading)


def _read_number(part: Part, reading: _Reading) -> bool:
    sign = "[+-]?" if part.is_signed else ""
    match = re.compile(rf"{sign}[0-9]{{1,{part.most_digits}}}").match(reading.text, reading.position)
    if match is None:
        return False
    reading.fields.append((part.field, int(match[0])))
    reading.position = match.end()
    return True


def _read_two_digits(part: Part, reading: _Reading, this_year: int) -> bool:
    form = "[0-9]{2}" if part.before_digits else "[+-]?[0-9]{1,9}"
    match = re.compile(form).match(reading.text, reading.position)
    if match is None:
        return False
    year = int(match[0])
    if len(match[0]) == 2 and match[0].isdigit():  # noqa: PLR2004 - yy
        lowest = this_year - 30 - 50
        year += lowest - lowest % 100 + (100 if year < lowest % 100 else 0)
    reading.fields.append(("weekyear" if part.letter == "x" else "year", year))
    reading.position = match.end()
    return True


def _read_fraction(part: Part, reading: _Reading) -> bool:
    match = re.compile(rf"[0-9]{{1,{part.count}}}").match(reading.text, reading.position)
    if match is None:
        return False
    reading.fields.append(("millisOfSecond", int(match[0][:3].ljust(3, "0"))))
    reading.position = match.end()
    return True


def _read_name(reading: _Reading, name: str, known: list[str]) -> bool:
    """The whole name or its first three letters, the longest that fits."""
    for length in range(max(map(len, known)), 1, -1):
        shown = reading.text[reading.position : reading.position + length]
        for index, each in enumerate(known):
            if shown in {form for full in (each, each[:3]) for form in (full, full.lower(), full.upper())}:
                if name:
                    reading.fields.append((name, index + FIELDS[name].smallest))
                reading.position += length
                return True
    return False


def _read_zone(part: Part, reading: _Reading) -> bool:
    rest = reading.text[reading.position :]
    if part.letter == "Z" and part.count <= 2:  # noqa: PLR2004 - ZZZ is an id
        if rest[:1] in {"Z", "z"}:
            reading.offset = 0
            reading.position += 1
            return True
        match = OFFSET_PATTERN.match(rest)
        if match is None:
            return False
        reading.offset = offset_of(match)
        reading.position += match.end()
        return True
    known = zone_ids() if part.letter == "Z" else _ZONE_NAMES.keys()
    for length in range(min(len(rest), 40), 0, -1):
        if rest[:length] in known:
            reading.zone = zone(_ZONE_NAMES.get(rest[:length], rest[:length]) if part.letter == "z" else rest[:length])
            reading.position += length
            return True
    return False


def read_iso(text: str, default: Zone) -> Moment:
    """What ``new DateTime('2026-01-31T12:00:00Z')`` means: any prefix of it, also with weeks or days of the year."""
    match = _ISO.fullmatch(text) if text else None
    if match is None:
        raise Fault(
            f"'{text:.60}' is not a date and time of ISO 8601", hint="Write 2026-01-31 or 2026-01-31T12:00:00Z."
        )
    year, month, day, of_year, week, of_week, hour, minute, second, fraction, offset = match.groups()
    named = [
        ("weekyear" if week else "year", year),
        ("monthOfYear", month),
        ("dayOfMonth", day),
        ("dayOfYear", of_year),
        ("weekOfWeekyear", week),
        ("dayOfWeek", of_week),
        ("hourOfDay", hour),
        ("minuteOfHour", minute),
        ("secondOfMinute", second),
    ]
    found = [(name, int(value)) for name, value in named if value is not None]
    reading = _Reading(text, fields=found)
    if fraction is not None:
        if hour is None:
            raise Fault(f"'{text:.60}' has a fraction of no hour, minute or second")
        _combined(found)  # in bounds?
        part = int(fraction) * FIELDS[found[-1][0]].unit // 10 ** len(fraction)
        days = [(name, value) for name, value in found if FIELDS[name].unit >= DAY]
        reading.fields = [*days, ("millisOfDay", _millis_of_day(found) + part)]
    if offset == "Z":
        reading.offset = 0
    elif offset and (written := OFFSET_PATTERN.fullmatch(offset)):
        reading.offset = offset_of(written)
    return reading.moment(default).in_zone(default)


def _millis_of_day(found: list[tuple[str, int]]) -> int:
    return sum(value * FIELDS[name].unit for name, value in found if FIELDS[name].unit < DAY)
