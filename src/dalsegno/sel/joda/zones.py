"""Zones: how far local time is from UTC, and back, as Joda decides it where clocks change."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import resources
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dalsegno.sel.faults import Fault, nearest
from dalsegno.sel.joda.calendar import DAY, HOUR, MINUTE, SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The calendar repeats after 400 years, and so do the rules of clocks.
_CYCLE = 146_097 * DAY
_FIRST, _LAST = -62_135_510_400_000, 253_402_214_400_000
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,]?(\d{1,3}))?)?)?")


@dataclass(frozen=True)
class Zone:
    """A named zone, or a fixed offset."""

    id: str
    rules: ZoneInfo | None = field(default=None, compare=False)
    fixed: int = 0

    def __str__(self) -> str:
        return self.id

    def offset(self, millis: int) -> int:
        """What to add to UTC at this moment."""
        if self.rules is None:
            return self.fixed
        shift = self._local(millis).utcoffset() or timedelta()
        return shift // timedelta(milliseconds=1)

    def short_name(self, millis: int) -> str:
        """PST, CET or the like; an offset where there is no such name."""
        if self.rules is None:
            return "UTC" if self.fixed == 0 else offset_text(self.fixed, colon=True)
        name = self._local(millis).tzname() or ""
        return name if name[:1].isalpha() else offset_text(self.offset(millis), colon=True)

    def _local(self, millis: int) -> datetime:
        if millis > _LAST:
            millis = _LAST - _CYCLE + (millis - _LAST) % _CYCLE
        return (_EPOCH + timedelta(milliseconds=max(millis, _FIRST))).astimezone(self.rules)

    def from_local(self, local: int) -> int:
        """The moment of a local time: the earlier of two; where there is none, as if clocks had not changed yet."""
        return local - self._offset_of_local(local)[0]

    def from_local_strictly(self, local: int) -> int:
        """The same, but a local time that does not exist is refused."""
        offset, exists = self._offset_of_local(local)
        if not exists:
            raise Fault(f"this local time does not exist in {self.id}: clocks were put forward over it")
        return local - offset

    def _offset_of_local(self, local: int) -> tuple[int, bool]:
        before, after = self.offset(local - DAY), self.offset(local + DAY)
        for offset in (before, after):
            if self.offset(local - offset) == offset:
                return offset, True
        return before, False

    def from_local_near(self, local: int, original: int | None = None) -> int:
        """The moment of a local time that was reached from a moment by setting a field.

        The offset of that moment is kept if it still holds. Otherwise this follows Joda, which takes the earlier of two
        to the west of Greenwich, and the later to the east.
        """
        if original is not None:
            kept = self.offset(original)
            if self.offset(local - kept) == kept:
                return local - kept
        guess = self.offset(local)
        offset = self.offset(local - guess)
        if guess not in {offset, abs(guess)} and self.offset(local - guess) != self.offset(local - offset):
            offset = guess
        return local - offset


UTC_ZONE = Zone("UTC")


@lru_cache(maxsize=1024)
def zone(identifier: str) -> Zone:
    """The zone of an id: a region, or an offset."""
    if identifier in {"UTC", "UT", "Z"}:
        return UTC_ZONE
    if identifier in zone_ids():
        try:
            return Zone(_canonical(identifier), ZoneInfo(identifier))
        except (ZoneInfoNotFoundError, ValueError):  # pragma: no cover - the list is tzdata's own
            pass
    if match := _OFFSET.fullmatch(identifier.removeprefix("UTC")):
        return fixed(offset_of(match))
    raise Fault(f"'{identifier:.60}' is not a time zone", hint=nearest(identifier[:60], zone_ids()))


def fixed(offset: int) -> Zone:
    return Zone(offset_text(offset, colon=True, fields=4), fixed=offset) if offset else UTC_ZONE


@cache
def zone_ids() -> frozenset[str]:
    """What tzdata knows; nothing else is ever looked up, least of all on disk."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(listed.split()) - {"Factory"}


def _canonical(identifier: str) -> str:
    """The name that a zone has today, if this one is old, as US/Pacific is. Names of today's places are kept."""
    links, places = _links_and_places()
    return identifier if identifier in places else links.get(identifier, identifier)


@cache
def _links_and_places() -> tuple[dict[str, str], frozenset[str]]:
    data = resources.files("tzdata").joinpath("zoneinfo")
    lines = [line.split() for line in data.joinpath("tzdata.zi").read_text(encoding="utf-8").splitlines()]
    places = data.joinpath("zone.tab").read_text(encoding="utf-8").splitlines()
    named = frozenset(line.split("\t")[2] for line in places if not line.startswith("#"))
    return {words[2]: words[1] for words in lines if words[:1] == ["L"]}, named | {"CET", "EET", "WET"}


def offset_of(match: re.Match[str]) -> int:
    sign, hours, minutes, seconds, millis = match.groups()
    if int(hours) > 23 or int(minutes or 0) > 59 or int(seconds or 0) > 59:  # noqa: PLR2004
        raise Fault(f"{match[0]} is not an offset")
    size = (
        int(hours) * HOUR + int(minutes or 0) * MINUTE + int(seconds or 0) * SECOND + int((millis or "0").ljust(3, "0"))
    )
    return -size if sign == "-" else size


def offset_text(offset: int, *, colon: bool, fields: int = 2) -> str:
    """+02:00 or +0200; with more fields, seconds and milliseconds where they are not zero."""
    size = abs(offset)
    separator = ":" if colon else ""
    text = f"{'-' if offset < 0 else '+'}{size // HOUR:02}{separator}{size // MINUTE % 60:02}"
    if fields > 2 and size % MINUTE:  # noqa: PLR2004 - hours and minutes
        text += f"{separator}{size // SECOND % 60:02}"
        if size % SECOND:
            text += f"{'.' if colon else ''}{size % SECOND:03}"
    return text


OFFSET_PATTERN = _OFFSET
