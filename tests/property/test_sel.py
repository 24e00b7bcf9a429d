"""SEL: arithmetic is Java's, only SelError comes out, and calendars, strings and patterns agree with Python's."""

from __future__ import annotations

import ctypes
import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dalsegno.errors import SelError
from dalsegno.sel import Limits, Type, Value, evaluate, names_of
from dalsegno.sel.texts import from_utf16, java_double, to_utf16

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = Limits(steps=20_000, turns=200, memory=1_000_000, characters=20_000, seconds=10)
EDGES = [0, 1, -1, 2, 2**31, -(2**31), 2**63 - 1, -(2**63)]
longs = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1))
texts = st.text(max_size=20)


def result(expression: str, **params: Any) -> Any:
    types = {bool: Type.BOOLEAN, int: Type.LONG, float: Type.DOUBLE, str: Type.STRING}
    given_params = {name: Value(types[type(value)], value) for name, value in params.items()}
    return evaluate(expression, given_params, now=NOW).value


def int64(number: int) -> int:
    return ctypes.c_int64(number & (2**64 - 1)).value


@given(longs, longs)
@example(-(2**63), -1)
def test_whole_numbers_wrap_and_cut_as_in_java(a: int, b: int) -> None:
    assert result("a + b", a=a, b=b) == int64(a + b)
    assert result("a - b", a=a, b=b) == int64(a - b)
    assert result("a * b", a=a, b=b) == int64(a * b)
    assert result("-a", a=a) == int64(-a)
    assert result("a < b", a=a, b=b) == (a < b)
    if b:
        quotient = math.trunc(Fraction(a, b))
        assert result("a / b", a=a, b=b) == int64(quotient)
        assert result("a % b", a=a, b=b) == a - b * quotient
        assert result("x = a; x /= b; x *= b; x += a % b; x", a=a, b=b) == int64(a)


@given(st.floats(), st.floats())
@example(1.0, 0.0)
@example(-1.0, -0.0)
@example(math.inf, 2.0)
def test_doubles_never_fail(a: float, b: float) -> None:
    for operator in "+-*/%":
        found = result(f"a {operator} b", a=a, b=b)
        assert isinstance(found, float)
    if b and math.isfinite(a) and math.isfinite(b):
        remainder = result("a % b", a=a, b=b)
        assert abs(remainder) <= abs(b)
        assert math.copysign(1, remainder) == math.copysign(1, a)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e7)
@example(0.001)
@example(9.999999e6)
@example(5e-324)
def test_doubles_are_written_so_that_they_are_read_again(number: float) -> None:
    written = java_double(number)
    assert float(written) == number
    assert re.fullmatch(r"-?\d+\.\d+(E-?\d+)?", written)
    assert ("E" in written) == (number != 0 and not 1e-3 <= abs(number) < 1e7)


@given(texts, texts)
@example("😀", "😁")
def test_strings_are_measured_as_in_java(one: str, other: str) -> None:
    units = one.encode("utf-16-be")
    assert result("a.length()", a=one) == len(units) // 2
    assert from_utf16(to_utf16(one)) == one
    assert result("a + b", a=one, b=other) == one + other
    order = result("a.compareTo(b)", a=one, b=other)
    expected = (units > other.encode("utf-16-be")) - (units < other.encode("utf-16-be"))
    assert (order > 0) - (order < 0) == expected
    assert result("(a + b).lastIndexOf(b) >= a.length()", a=one, b=other) is True
    assert result("(a + b).substring(a.length())", a=one, b=other) == other


WORDS = (
    "x y s m 1 2.5 'a' \"b\" true null ( ) [ ] { } ; , . + - * / % = == != < > && || ! ? : += new int String Map "
    "long[] if else while for return throw break continue import DateTime Util Math params .put('k',1) .split(',') "
    ".replaceAll('(a+)+','$1') .length .toString() 0x1F 1e999 \\u0041 // /* */ int[]{1,2} String.format('%5s',x) "
    "Util.intsBetween(0,9,1) DateTime(0) '%d' @ #"
)
programs = st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)


@given(st.one_of(st.text(max_size=200), programs))
@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example("'\\ud800'")
@example("String.format('%-5', 1)")
@example("'a'.split('[')")
@example("x = new Map(); x.put('a', x); x == null")
def test_any_text_gives_a_value_or_an_error_of_ours(expression: str) -> None:
    for act in (lambda: evaluate(expression, {}, now=NOW, limits=SMALL), lambda: names_of(expression)):
        try:
            act()
        except SelError as refused:
            refused.message.encode("utf-8")


METHODS = (
    "split replaceAll replace substring format join escape compareTo trim valueOf toUpperCase lastIndexOf put get size "
    "plusDays withZone toString parse forPattern forID print parseDateTime withHourOfDay daysBetween dateIntsBetween "
    "intsBetween dateIntToTs dateIntHourToTs tsToDateInt timeoutForDateIntDeadline toJson min pow longValue getAsText"
)
ARGUMENTS = [
    *(
        "null",
        "0",
        "-1",
        "9223372036854775807",
        "2.5",
        "true",
        "''",
        "'%'",
        "'%s %d'",
        "'$1'",
        "'\\\\'",
        "'('",
        "'[a-'",
    ),
    *("'20190101'", "'yyyy-MM-dd'", "'UTC'", "'1 day'", "new Map()", "new long[]{1}", "new DateTime(0)"),
    *("DateTimeZone.UTC", "DateTimeFormat.forPattern('yy')", "params", "String", "Math", "'2019-01-01'", "zz", "'é😀'"),
]


@given(st.sampled_from(ARGUMENTS), st.sampled_from(METHODS.split()), st.lists(st.sampled_from(ARGUMENTS), max_size=5))
@settings(max_examples=1500, deadline=None)
def test_any_call_gives_a_value_or_an_error_of_ours(receiver: str, method: str, arguments: list[str]) -> None:
    for target in (receiver, "Util", "String", "DateTime"):
        try:
            evaluate(f"({target}).{method}({', '.join(arguments)})", {}, now=NOW, limits=SMALL)
        except SelError as refused:
            refused.message.encode("utf-8")


@given(st.dates(), st.integers(-4000, 4000))
def test_days_are_those_of_the_calendar(day: date, count: int) -> None:
    written = f"{day:%Y%m%d}".zfill(8)
    millis = (day - date(1970, 1, 1)).days * 86_400_000
    assert result("Util.dateIntToTs(d)", d=written) == millis
    assert result("new DateTime(t).toString('xxxx ww e DDD')", t=millis) == "{:04} {:02} {} {:03}".format(
        *day.isocalendar(), day.timetuple().tm_yday
    )
    try:
        later = day + timedelta(days=count)
    except OverflowError:
        return
    assert result("Util.incrementDateInt(d, n)", d=written, n=count) == f"{later:%Y%m%d}".zfill(8)
    assert (
        result("Days.daysBetween(new DateTime(a), new DateTime(b)).getDays()", a=millis, b=millis + count * 86_400_000)
        == count
    )


ZONES = ["America/Los_Angeles", "Europe/Paris", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo", "UTC"]


@given(st.integers(0, 4_102_444_800_000), st.sampled_from(ZONES))
def test_zones_are_those_of_the_database(millis: int, zone: str) -> None:
    local = datetime.fromtimestamp(millis // 1000, ZoneInfo(zone))
    shown = result("new DateTime(t, DateTimeZone.forID(z)).toString('yyyy-MM-dd HH:mm:ss')", t=millis, z=zone)
    assert shown == f"{local:%Y-%m-%d %H:%M:%S}"
    again = result(
        "fmt = DateTimeFormat.forPattern('yyyyMMddHHmmssSSSZ'); d = new DateTime(t, DateTimeZone.forID(z)); "
        "fmt.parseMillis(fmt.print(d))",
        t=millis,
        z=zone,
    )
    assert again == millis


atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "\\b", "(?:ab)", "(a|b)", "(ab|a)", "^", "$", "x"]
)
quantified = st.tuples(atoms, st.sampled_from(["", "", "*", "+", "?", "*?", "{1,2}"])).map("".join)
patterns = st.lists(quantified, min_size=1, max_size=4).map("".join)


@given(st.text(alphabet="abx1 ", max_size=12), patterns)
@settings(max_examples=500)
def test_patterns_match_what_python_matches(text: str, pattern: str) -> None:
    if re.search(r"[\^$b]\*|[\^$b]\+|[\^$b]\?|[\^$b]\{", pattern):
        return  # repeating a place: Python refuses or differs
    assert result("t.replaceAll(p, '<$0>')", t=text, p=pattern) == java_like_replacement(re.compile(pattern), text)


def java_like_replacement(pattern: re.Pattern[str], text: str) -> str:
    """After an empty match Java goes on one character later, while Python looks for a longer one at the same place."""
    shown, position, last = "", 0, 0
    while position <= len(text) and (match := pattern.search(text, position)):
        shown += f"{text[last : match.start()]}<{match[0]}>"
        last = match.end()
        position = last + (match.start() == last)
    return shown + text[last:]
