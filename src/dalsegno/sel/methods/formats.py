"""String.format: the conversions of java.util.Formatter that make sense for SEL's types."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext

from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import Meter
from dalsegno.sel.texts import to_utf16
from dalsegno.sel.values import Box, Type, text_of

_SPECIFIER = re.compile(r"%(?:(\d+)\$|(<))?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")
_LARGEST_CHARACTER = 0x10FFFF
_DIGITS = 10
#: Characters of one specifier: flags and digits could be told apart in many ways if there were thousands.
_LONGEST = 64


def formatted(pattern: str, arguments: list[Box], meter: Meter) -> str:
    parts: list[str] = []
    length = 0
    position = ordinary = 0
    last: int | None = None
    while position < len(pattern):
        start = pattern.find("%", position)
        if start < 0:
            start = len(pattern)
        parts.append(pattern[position:start])
        position = start
        if start < len(pattern):
            match = _SPECIFIER.match(pattern, start, start + _LONGEST)
            if match is None:
                raise Fault(
                    f"'{pattern[start : start + 10]}' is not a format specifier", hint="For a percent sign write %%."
                )
            if match[6] not in "n%":
                if match[1]:
                    last = int(match[1][:_DIGITS]) - 1
                elif not match[2]:
                    last, ordinary = ordinary, ordinary + 1
                if last is None or not 0 <= last < len(arguments):
                    raise Fault(f"{match[0]:.40} has no argument: there are {len(arguments)}")
            _check_width(match, meter)
            parts.append(_converted(match, arguments[last or 0] if arguments else None, meter))
            position = match.end()
        length += sum(map(len, parts[-2:]))
        meter.text(length if length > meter.limits.characters else 0)
    return "".join(parts)


def _check_width(match: re.Match[str], meter: Meter) -> None:
    """Widths and precisions are measured before anything is made of them."""
    for digits in (match[4], match[5]):
        if digits and (len(digits) > _DIGITS or int(digits) > meter.limits.characters):
            raise Fault(f"{match[0]:.40} makes a string longer than {meter.limits.characters:,} characters")
        meter.text(int(digits or 0))


def _converted(match: re.Match[str], argument: Box | None, meter: Meter) -> str:
    flags, width, precision, conversion = match[3], int(match[4] or 0), match[5], match[6]
    if conversion == "n":
        return "\n"
    if conversion == "%" or argument is None:
        return _padded("%", flags, width)
    places = None if precision is None else int(precision)
    upper = conversion.isupper()
    body = _body(conversion.lower(), argument, flags, places, width, meter)
    return _padded(body.upper() if upper else body, flags, width)


def _body(conversion: str, argument: Box, flags: str, places: int | None, width: int, meter: Meter) -> str:  # noqa: PLR0911
    value = argument.value
    match conversion:
        case "s":
            return text_of(argument, meter)[:places]
        case "b":
            shown = value if argument.type is Type.BOOLEAN else value is not None
            return ("true" if shown else "false")[:places]
        case _ if value is None:
            return "null"[:places]
        case "d" if argument.type is Type.LONG and places is None:
            return _signed(value < 0, _grouped(str(abs(value)), flags), flags, width)
        case "x" | "o" if argument.type is Type.LONG and places is None:
            return _bits(value, conversion, flags, width)
        case "c" if argument.type is Type.LONG and 0 <= value <= _LARGEST_CHARACTER and places is None:
            return to_utf16(chr(value))
        case "f" | "e" | "g" if argument.type is Type.DOUBLE:
            return _real(value, conversion, flags, 6 if places is None else places, width)
    if conversion not in "sbdxocfeg":
        raise Fault(f"%{conversion} is not supported", hint="There are %s %d %f %e %g %x %o %c %b %n and %%.")
    raise Fault(f"%{conversion} cannot format {argument.type}")


def _grouped(digits: str, flags: str) -> str:
    return f"{int(digits):,}" if "," in flags else digits


def _bits(value: int, conversion: str, flags: str, width: int) -> str:
    """Negative numbers show their two's complement: of 32 bits if they fit, as Maestro hands them over so."""
    if value < 0:
        value += 2**32 if value >= -(2**31) else 2**64
    digits = f"{value:{conversion}}"
    if "#" in flags:
        digits = ("0x" if conversion == "x" else "0") + digits
    return digits.rjust(width, "0") if "0" in flags else digits


def _real(value: float, conversion: str, flags: str, places: int, width: int) -> str:
    if math.isnan(value) or math.isinf(value):
        shown = "NaN" if math.isnan(value) else "Infinity"
        return _signed(value < 0, shown, flags.replace("0", ""), width)
    digits = _digits(abs(value), conversion, places)
    if "," in flags and conversion == "f":
        whole, point, fraction = digits.partition(".")
        digits = _grouped(whole, flags) + point + fraction
    return _signed(math.copysign(1.0, value) < 0, digits, flags, width)


def _digits(value: float, conversion: str, places: int) -> str:
    """Java rounds the shortest digits half up; Python's own formatting rounds the exact value half to even."""
    with localcontext() as context:
        context.prec = max(400, places + 400)
        exact = Decimal(repr(value))
        if conversion == "g":
            places = places or 1
            rounded = (
                exact.quantize(Decimal(1).scaleb(exact.adjusted() - places + 1), ROUND_HALF_UP) if value else exact
            )
            if value == 0 or Decimal("0.0001") <= rounded < Decimal(10) ** places:
                shown = places - 1 if value == 0 else max(places - rounded.adjusted() - 1, 0)
                return f"{exact.quantize(Decimal(1).scaleb(-shown), ROUND_HALF_UP):f}"
            places -= 1
        if conversion == "f":
            return f"{exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"
        if value == 0:
            return f"{Decimal(0).quantize(Decimal(1).scaleb(-places)):f}e+00"
        mantissa = exact.scaleb(-exact.adjusted()).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
        exponent = exact.adjusted()
        if mantissa >= 10:  # noqa: PLR2004 - 9.99 became 10.0
            mantissa, exponent = mantissa.scaleb(-1).quantize(Decimal(1).scaleb(-places)), exponent + 1
        return f"{mantissa:f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _signed(negative: bool, digits: str, flags: str, width: int) -> str:
    before, after = "", ""
    if negative:
        before, after = ("(", ")") if "(" in flags else ("-", "")
    elif "+" in flags:
        before = "+"
    elif " " in flags:
        before = " "
    if "0" in flags:
        digits = digits.rjust(width - len(before) - len(after), "0")
    return before + digits + after


def _padded(text: str, flags: str, width: int) -> str:
    return text.ljust(width) if "-" in flags else text.rjust(width)
