"""How Java writes and orders things.

Java counts strings in units of UTF-16. Inside expressions, characters beyond that are held as two surrogates, so that
lengths and positions come out the same; they are joined again on the way out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

_FIRST_TABLE = 16
_LOAD = 0.75
_WORD = 0xFFFFFFFF


def to_utf16(text: str) -> str:
    if text.isascii() or max(text) <= "\uffff":
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(units[index] << 8 | units[index + 1]) for index in range(0, len(units), 2))


def from_utf16(text: str) -> str:
    """Surrogates that have lost their other half cannot be printed: they become the mark for what is unreadable."""
    if text.isascii():
        return text
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")


def java_double(value: float) -> str:
    """Double.toString: the shortest digits, with an exponent outside of 0.001 to 10,000,000."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    #: Where the point stands, counted from the first digit that is not zero.
    point = len(whole) + int(exponent or 0) - leading_zeros
    digits = digits.rstrip("0")
    if -3 < point <= 7:  # noqa: PLR2004 - Java's own bounds
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        padded = digits.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def string_hash(text: str) -> int:
    """String.hashCode, as an unsigned word."""
    result = 0
    for character in text:
        result = (31 * result + ord(character)) & _WORD
    return result


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """The order in which Java's HashMap goes through keys that were put in this order."""
    found = list(keys)
    table = _FIRST_TABLE
    while len(found) > table * _LOAD:
        table *= 2

    def bucket(key: str) -> int:
        spread = string_hash(key)
        return (spread ^ spread >> 16) & (table - 1)

    return sorted(found, key=bucket)
