"""String."""

from __future__ import annotations

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import BYTES_PER_ELEMENT
from dalsegno.sel.methods.formats import formatted
from dalsegno.sel.methods.registry import anything, integer, method, text
from dalsegno.sel.regex.matching import replaced, split
from dalsegno.sel.texts import from_utf16, to_utf16
from dalsegno.sel.values import ELEMENT_OF, Box, Type, array, text_of

_BLANKS = "".join(map(chr, range(33)))
#: In this order: the backslash first.
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\b", "\\b"), ("\n", "\\n"), ("\r", "\\r"), ("\f", "\\f"), ('"', '\\"'))


def construct(arguments: list[Box]) -> str:
    """``new String(...)``."""
    match arguments:
        case []:
            return ""
        case [Box(type=Type.LONG, value=value)]:
            return str(value)
        case [only]:
            return str(text(only))
    raise Fault(f"String takes 0 or 1 arguments, not {len(arguments)}")


@method(Type.STRING, "valueOf", anything, static=True)
def _value_of(context: Context, value: Box) -> str:
    return text_of(value, context.meter)


@method(Type.STRING, "length")
def _length(_: Context, value: str) -> int:
    return len(value)


@method(Type.STRING, "isEmpty")
def _is_empty(_: Context, value: str) -> bool:
    return not value


@method(Type.STRING, "toUpperCase")
def _upper(_: Context, value: str) -> str:
    return to_utf16(from_utf16(value).upper()) if not value.isascii() else value.upper()


@method(Type.STRING, "toLowerCase")
def _lower(_: Context, value: str) -> str:
    return to_utf16(from_utf16(value).lower()) if not value.isascii() else value.lower()


@method(Type.STRING, "trim")
def _trim(_: Context, value: str) -> str:
    return value.strip(_BLANKS)


@method(Type.STRING, "startsWith", text)
def _starts_with(_: Context, value: str, start: str) -> bool:
    return value.startswith(start)


@method(Type.STRING, "endsWith", text)
def _ends_with(_: Context, value: str, end: str) -> bool:
    return value.endswith(end)


@method(Type.STRING, "contains", text)
def _contains(_: Context, value: str, part: str) -> bool:
    return part in value


@method(Type.STRING, "equals", anything)
def _equals(_: Context, value: str, other: Box) -> bool:
    return other.type is Type.STRING and value == other.value


@method(Type.STRING, "lastIndexOf", text)
def _last_index_of(_: Context, value: str, part: str) -> int:
    # Searching backwards, Python may take the product of both lengths; forwards, their sum.
    found = value[::-1].find(part[::-1])
    return -1 if found < 0 else len(value) - len(part) - found


@method(Type.STRING, "compareTo", text)
def _compare_to(_: Context, value: str, other: str) -> int:
    """The difference of the first characters that differ, or of the lengths."""
    low, high = 0, min(len(value), len(other))
    while low < high:  # where they begin to differ, by halves: comparing slices is fast
        middle = (low + high + 1) // 2
        if value[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    if low < min(len(value), len(other)):
        return ord(value[low]) - ord(other[low])
    return len(value) - len(other)


@method(Type.STRING, "substring", integer)
def _substring_from(_: Context, value: str, begin: int) -> str:
    return _cut(value, begin, len(value))


@method(Type.STRING, "substring", integer, integer)
def _substring(_: Context, value: str, begin: int, end: int) -> str:
    return _cut(value, begin, end)


def _cut(value: str, begin: int, end: int) -> str:
    if not 0 <= begin <= end <= len(value):
        raise Fault(f"substring({begin}, {end}) goes beyond the {len(value)} characters of the string")
    return value[begin:end]


@method(Type.STRING, "replace", text, text)
def _replace(context: Context, value: str, old: str, new: str) -> str:
    context.meter.text(len(value) + value.count(old) * (len(new) - len(old)))
    return value.replace(old, new)


@method(Type.STRING, "replaceAll", text, text)
def _replace_all(context: Context, value: str, pattern: str, new: str) -> str:
    return replaced(value, pattern, new, context.meter)


@method(Type.STRING, "split", text)
def _split(context: Context, value: str, pattern: str) -> Box:
    return _strings(context, split(value, pattern, 0, context.meter))


@method(Type.STRING, "split", text, integer)
def _split_at_most(context: Context, value: str, pattern: str, limit: int) -> Box:
    return _strings(context, split(value, pattern, limit, context.meter))


def _strings(context: Context, parts: list[str]) -> Box:
    context.meter.make(len(parts) * BYTES_PER_ELEMENT)
    return array(Type.STRING, parts)


@method(Type.STRING, "format", variadic=True, static=True)
def _format(context: Context, arguments: list[Box]) -> str:
    match arguments:
        case []:
            raise Fault("format needs a pattern", hint="String.format('%s-%d', 'a', 1)")
        case [pattern, Box(type=Type.STRING_ARRAY, value=items)]:
            return formatted(text(pattern), items, context.meter)
        case [pattern, *rest]:
            return formatted(text(pattern), rest, context.meter)
    raise AssertionError


@method(Type.STRING, "join", variadic=True, static=True)
def _join(context: Context, arguments: list[Box]) -> str:
    match arguments:
        case []:
            raise Fault("join needs a separator", hint="String.join(',', 'a', 'b')")
        case [separator, Box(type=type_, value=items)] if type_ in ELEMENT_OF:
            if type_ is not Type.STRING_ARRAY:
                raise Fault(f"join takes strings, not {type_}")
        case [separator, *items]:
            pass
    between = text(separator)
    words = [_word(item) for item in items]
    context.meter.step(len(words))
    context.meter.text(sum(map(len, words)) + len(between) * max(len(words) - 1, 0))
    return str(between.join(words))


def _word(box: Box) -> str:
    return "null" if box.type is Type.STRING and box.value is None else str(text(box))


@method(Type.STRING, "escape", text, static=True)
def _escape_given(context: Context, value: str) -> str:
    return _escaped(context, value)


@method(Type.STRING, "escape")
def _escape(context: Context, value: str) -> str:
    return _escaped(context, value)


def _escaped(context: Context, value: str) -> str:
    context.meter.text(2 * len(value))
    for plain, escape in _ESCAPES:
        value = value.replace(plain, escape)
    return value
