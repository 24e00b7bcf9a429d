"""Joda's patterns: yyyy-MM-dd and the like, and how a moment is printed with one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from dalsegno.sel.faults import Fault
from dalsegno.sel.joda.calendar import FIELDS
from dalsegno.sel.joda.moments import DAY_NAMES, MONTH_NAMES, Moment
from dalsegno.sel.joda.zones import Zone, offset_text

#: The field of each letter, and how many digits of it are read at most.
LETTERS = {
    "C": ("centuryOfEra", 9),
    "Y": ("yearOfEra", 9),
    "y": ("year", 9),
    "x": ("weekyear", 9),
    "M": ("monthOfYear", 2),
    "w": ("weekOfWeekyear", 2),
    "e": ("dayOfWeek", 1),
    "E": ("dayOfWeek", 0),
    "D": ("dayOfYear", 3),
    "d": ("dayOfMonth", 2),
    "a": ("halfdayOfDay", 0),
    "K": ("hourOfHalfday", 2),
    "h": ("clockhourOfHalfday", 2),
    "H": ("hourOfDay", 2),
    "k": ("clockhourOfDay", 2),
    "m": ("minuteOfHour", 2),
    "s": ("secondOfMinute", 2),
    "S": ("millisOfSecond", 9),
    "G": ("era", 0),
    "z": ("zone", 0),
    "Z": ("zone", 0),
}
YEARS = frozenset("Yyx")
_SIGNED = frozenset("Cyx")
_NAMES = {"monthOfYear": MONTH_NAMES, "dayOfWeek": DAY_NAMES, "halfdayOfDay": ["AM", "PM"]}
_LONGEST = 1000
_WORD = 3
_FULL_WORD = 4


@dataclass(frozen=True)
class Part:
    """A letter and how often it stands there; or, without a letter, text as it is."""

    letter: str
    text: str
    #: Whether digits of another field follow at once, so that this one must not swallow them.
    before_digits: bool = False

    @property
    def count(self) -> int:
        return len(self.text)

    @property
    def field(self) -> str:
        return LETTERS[self.letter][0]

    @property
    def is_signed(self) -> bool:
        return self.letter in _SIGNED

    @property
    def is_name(self) -> bool:
        return self.letter in "EaG" or (self.letter == "M" and self.count >= _WORD)

    @property
    def is_number(self) -> bool:
        return bool(self.letter) and not self.is_name and self.letter not in "zZ"

    @property
    def most_digits(self) -> int:
        if self.letter in YEARS or self.letter == "S":
            return self.count if self.before_digits or self.letter == "S" else 9
        return self.count if self.letter == "C" else LETTERS[self.letter][1]


@dataclass(frozen=True)
class Pattern:
    """A formatter: a pattern, and the zone it prints and reads in if it was given one."""

    source: str
    parts: tuple[Part, ...]
    zone: Zone | None = None

    def __str__(self) -> str:
        return self.source

    def in_zone(self, zone: Zone) -> Pattern:
        return replace(self, zone=zone)

    def print(self, moment: Moment) -> str:
        seen = moment if self.zone is None else moment.in_zone(self.zone)
        local = seen.local
        return "".join(_printed(part, seen, local) for part in self.parts)


@lru_cache(maxsize=64)
def pattern(source: str) -> Pattern:
    """The formatter of a pattern."""
    if not source:
        raise Fault("the pattern is empty", hint="Write one such as yyyy-MM-dd.")
    if len(source) > _LONGEST:
        raise Fault(f"the pattern has more than {_LONGEST} characters")
    parts = list(_split(source))
    for index, part in enumerate(parts[:-1]):
        if parts[index + 1].is_number:
            parts[index] = replace(part, before_digits=True)
    return Pattern(source, tuple(parts))


def _split(source: str) -> list[Part]:
    parts: list[Part] = []
    position = 0
    while position < len(source):
        letter = source[position]
        end = position
        if letter.isascii() and letter.isalpha():
            while end < len(source) and source[end] == letter:
                end += 1
            if letter not in LETTERS:
                raise Fault(
                    f"{letter} is not a letter of a pattern", hint=f"Quote text: '{letter}'. Letters: {_known()}."
                )
            parts.append(Part(letter, source[position:end]))
        else:
            text, end = _text(source, position)
            if text:
                parts.append(Part("", text))
        position = end
    return parts


def _text(source: str, position: int) -> tuple[str, int]:
    """Text up to the next letter outside of quotes; two quotes are one."""
    text: list[str] = []
    quoted = False
    while position < len(source):
        character = source[position]
        if character == "'":
            if source[position : position + 2] == "''":
                text.append("'")
                position += 1
            else:
                quoted = not quoted
        elif not quoted and character.isascii() and character.isalpha():
            break
        else:
            text.append(character)
        position += 1
    return "".join(text), position


def _known() -> str:
    return " ".join(sorted(LETTERS, key=str.lower))


def _printed(part: Part, moment: Moment, local: int) -> str:  # noqa: PLR0911 - one return for each kind of part
    if not part.letter:
        return part.text
    if part.letter in "zZ":
        return _printed_zone(part, moment)
    if part.letter == "G":
        return "AD" if FIELDS["year"].get(local) > 0 else "BC"
    value = FIELDS[part.field].get(local)
    if part.is_name:
        name = _NAMES[part.field][value - FIELDS[part.field].smallest]
        return name if part.count >= _FULL_WORD or part.letter == "a" else name[:3]
    if part.letter == "S":
        return f"{value:03}".ljust(part.count, "0")[: part.count]
    if part.letter in YEARS and part.count == 2:  # noqa: PLR2004 - yy
        return f"{abs(value) % 100:02}"
    return f"{'-' if value < 0 else ''}{abs(value):0{part.count}}"


def _printed_zone(part: Part, moment: Moment) -> str:
    if part.letter == "z":
        if part.count >= _FULL_WORD:
            if moment.zone.offset(moment.millis) == 0 and moment.zone.rules is None:
                return "Coordinated Universal Time"
            raise Fault("full names of zones are not known", hint="Write z for PST, or ZZZ for America/Los_Angeles.")
        return moment.zone.short_name(moment.millis)
    if part.count >= _WORD:
        return moment.zone.id
    return offset_text(moment.zone.offset(moment.millis), colon=part.count == 2)  # noqa: PLR2004 - ZZ
