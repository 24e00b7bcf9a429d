"""Hostile expressions: each ends soon, in a value or a refusal, and without taking the memory."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress

import pytest

from dalsegno.errors import SelError
from dalsegno.sel import Limits, evaluate
from tests.sel.support import NOW, refusal, result

#: A string of half a million characters.
LONG = "s = 'a'; for (i = 0; i < 19; i += 1) s += s; "


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("while (true) 1 + 1;", "more than 25,000 turns"),
        ("for (;;) {}", "more than 25,000 turns"),
        ("x = 0; for (i = 0; i < 25000; i += 1) for (j = 0; j < 25000; j += 1) x += 1;", "1,000,000 steps"),
        ("s = 'a'; while (true) s = s + s;", "longer than 1,048,576"),
        ("s = 'a'; while (true) s += s;", "longer than 1,048,576"),
        ("s = 'a'; while (true) s = String.join(s, s, s);", "longer than 1,048,576"),
        (f"{LONG} s.replace('a', s)", "longer than 1,048,576"),
        (f"{LONG} s.replaceAll('a', s)", "longer than 1,048,576"),
        (f"{LONG} (s + s).escape().replace('a', '\\\\').escape()", "longer than 1,048,576"),
        (f"{LONG} String.join('', {', '.join(['s + s'] * 50)})", "longer than 1,048,576|MiB of memory"),
        (f"{LONG} m = new Map(); for (i = 0; i < 100; i += 1) m.put('' + i, s + i);", "MiB of memory"),
        (f"{LONG} a = new String[100]; for (i = 0; i < 100; i += 1) a[i] = s;", "MiB of memory"),
        ("m = new Map(); for (i = 0; i < 25000; i += 1) m.put('' + i, new long[25000]);", "MiB of memory"),
        ("new long[1000000000]", "more than 25,000"),
        ("new long[9223372036854775807]", "32 bits"),
        ("Util.intsBetween(0, 2000000000, 1)", "steps|memory"),
        ("Util.dateIntsBetween('00010101', '99991231', 1)", "steps|memory"),
        ("String.format('%1000000000d', 1)", "longer than 1,048,576"),
        ("String.format('%.1000000000f', 1.5)", "longer than 1,048,576"),
        ("String.format('%99999999999999999999s', 1)", "longer than 1,048,576"),
        ("String.format('%1048576s%1048576s', 1, 1)", "longer than 1,048,576|memory"),
        ("(" * 5000 + "1", "nested deeper than 100"),
        ("{" * 5000, "nested deeper than 100"),
        ("a" + "[a" * 3000, "nested deeper than 100"),
        ("a = " * 2000 + "1", "nested deeper than 100"),
        ("if (true) " * 900 + "1;", "nested deeper than 100"),
        ("x.f(" * 2000, "nested deeper than 100"),
        ("1" * 9000, "64 bits"),
        ("1 +" * 5000, "10,000"),
        ("m = new Map(); m.put('m', m); m", "holds itself"),
        ("m = new Map(); m.put('m', m); '' + m", "holds itself"),
        ("m = new Map(); m.put('m', m); Util.toJson(m)", "holds itself"),
        ("'a'.replaceAll('((((a{1,1000}){1,1000}){1,1000}){1,1000})', 'x')", "too large"),
        ("'a'.replaceAll('" + "(" * 500 + "a', 'x')", "nested too deeply"),
        ("'a'.replaceAll('" + "[" * 500 + "a', 'x')", "nested too deeply"),
        ("new DateTime(0).toString('" + "y" * 5000 + "')", "more than 1000"),
        ("new DateTime(0).plusYears(2147483647)", "between"),
        ("new DateTime(9223372036854775807).plusMillis(1)", "out of range"),
        ("Long.parseLong('" + "9" * 9000 + "')", "not a whole number"),
        ("DateTimeZone.forID('../../../etc/passwd')", "not a time zone"),
    ],
)
def test_refused(expression: str, words: str) -> None:
    begun = time.monotonic()
    refused = refusal(expression)
    assert any(word in refused.message for word in words.split("|")), refused.message
    assert time.monotonic() - begun < 20, "a busy machine may take a while, but not for ever"


@pytest.mark.parametrize(
    ("layer", "use"),
    [
        ("n = new Map(); n.put('a', m); n.put('b', m); Map m = n;", "m"),
        ("n = new Map(); n.put('a', m); n.put('b', m); Map m = n;", "'' + m"),
        ("n = new Map(); n.put('a', m); n.put('b', m); Map m = n;", "Util.toJson(m)"),
    ],
)
def test_small_maps_that_are_huge_when_written_out(layer: str, use: str) -> None:
    """Sixty maps, each twice in the next: 2**60 entries."""
    layer = layer.replace("n = new", "Map n = new")
    refused = refusal(f"Map m = new Map(); for (i = 0; i < 60; i += 1) {{ {layer} }} {use}")
    assert "memory" in refused.message or "steps" in refused.message or "longer" in refused.message


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("a" * 40, "(a+)+b"),
        ("a" * 40, "(a|aa)+$b"),
        ("a" * 40, "(a*)*b"),
        ("a" * 40, "(.*a){20}b"),
        ("a" * 40, "(x+x+)+y"),
        (" " * 40, "(\\\\s*,?\\\\s*)*;"),
    ],
)
def test_patterns_that_make_others_hang(text: str, pattern: str) -> None:
    assert result(f"'{text}'.replaceAll('{pattern}', '!')") == text


@pytest.mark.parametrize(
    "use",
    [
        "String.format('%' + s.replace('a', '0'), 1)",
        "String.format('%' + s.replace('a', '0') + '$', 1)",
        "Double.parseDouble(s.replace('a', '1') + 'x')",
        "Long.parseLong(s.replace('a', '1') + 'x')",
        "new DateTime(s.replace('a', '1'))",
        "DateTimeZone.forID('+' + s.replace('a', '1'))",
        "Util.timeoutForDateIntDeadline('20190101', s.replace('a', '1 day '))",
        "DateTimeFormat.forPattern('yyyy').parseDateTime(s.replace('a', '1'))",
        "s.replaceAll(s + '?', 'x')",
        "s.replaceAll('[' + s + ']', 'x')",
        "s.split('(' + s)",
        "s.lastIndexOf('ab' + s.substring(5))",
        "s.contains(s.substring(100000) + 'b')",
        "s.replace(s.substring(100000) + 'b', '')",
    ],
)
def test_half_a_million_characters_where_few_are_expected(use: str) -> None:
    begun = time.monotonic()
    with suppress(SelError):
        result(f"{LONG} {use}")
    assert time.monotonic() - begun < 10


def test_the_time_is_looked_at() -> None:
    limits = Limits(seconds=0.2, steps=10**9, turns=10**9)
    begun = time.monotonic()
    assert "longer than 0.2 s" in refusal("while (true) {}", limits=limits).message
    assert "longer than 0.2 s" in refusal(f"{LONG} s.replaceAll('(a?)*b', 'x')", limits=limits).message
    assert "longer than 0.2 s" in refusal(f"{LONG} while (true) s.compareTo(s + 'b');", limits=limits).message
    assert time.monotonic() - begun < 10


def test_what_is_allowed() -> None:
    assert result("x = 0; for (i = 0; i < 25000; i += 1) x += i; x") == 312487500
    assert result("s = ''; for (i = 0; i < 25000; i += 1) s += 'xxxxx'; s.length()") == 125_000
    assert result("new long[25000].length") == 25_000
    assert result("(" * 90 + "1" + ")" * 90) == 1
    assert result("1" + " + 1" * 2000) == 2001
    assert result("!" * 5000 + "true") is True
    assert result("false ? 0 : " * 800 + "5") == 5
    assert result("if (false) return 0; " + "else if (false) return 0; " * 300 + "else return 7;") == 7
    assert result(f"{LONG} s.length()") == 524_288


@pytest.mark.parametrize(
    "body",
    [
        "t = s + i;",
        "String t = s + i;",
        "t = 'x'; t += s; t += i;",
        "t = s; parts = (s.substring(0, 100) + ',' + i).split(','); String[] more = parts;",
    ],
)
def test_what_is_replaced_is_given_back(body: str) -> None:
    assert result(f"{LONG} for (i = 0; i < 1000; i += 1) {{ {body} }} t.length()") >= 524_288


@pytest.mark.parametrize(
    "body",
    [
        "String y = 'a'; m.put('' + i, y); y += s; String y = 'b';",
        "y = 'a'; m.put('' + i, y); y += s; String y = 'b';",
        "a = new String[1]; m.put('' + i, a[0]); a[0] = s; a = new String[1]; b = a;",
        "a = new String[1]; b = a; a[0] = s; m.put('' + i, a[0]); a = new String[1]; b = new String[1];",
        "a = new String[1]; a[0] = s; m.put('' + i, a); a = new String[1];",
        "String[] a = new String[1]; String[] b = a; a[0] = s; m.put('' + i, b); String[] a = new String[1];",
    ],
)
def test_nothing_is_given_back_that_is_still_alive(body: str) -> None:
    refused = refusal(f"{LONG} m = new Map(); for (i = 0; i < 200; i += 1) {{ {body} }} m.size()")
    assert "MiB of memory" in refused.message


HOSTILE_PYTHON = [
    "''.__class__.__mro__[1].__subclasses__()",
    "params.__class__.__init__.__globals__['os']",
    "__import__('os').system('id')",
    "(lambda: 1)()",
    "[c for c in ().__class__.__bases__[0].__subclasses__()]",
    "'{0.__class__}'.format(1)",
    "String.format('{0.__class__}', 1).foo",
    "eval('1')",
    "exec('import os')",
    "open('/etc/passwd').read()",
    "x.__dict__",
    "'a' * 1000000000",
    "9**9**9**9",
    "new Runtime().exec('id')",
    "Runtime.getRuntime().exec('id');",
    "Class.forName('java.lang.' + 'Runtime');",
    "import java.lang.Runtime; Runtime.getRuntime().exec('id');",
    "'abc'.getClass().forName('x')",
    "System.exit(1);",
    "new File('/etc/passwd').delete();",
    "Util.register('x')",
    "params.put('a', 'z')",
]


@pytest.mark.parametrize("expression", HOSTILE_PYTHON)
def test_nothing_is_reached(expression: str) -> None:
    refusal(expression, x=1)


def test_a_full_stack_of_the_caller_is_no_crash() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            evaluate("(" * 90 + "1" + ")" * 90, {}, now=NOW)

    with pytest.raises(SelError, match="nested too deeply"):
        deep(sys.getrecursionlimit() - 200)


def test_memory_stays_small() -> None:
    """In a process of its own, whose peak is its own."""
    code = (
        "import resource\n"
        "from tests.sel.test_limits import LONG, NOW\n"
        "from dalsegno.sel import evaluate\n"
        "from dalsegno.errors import SelError\n"
        "evaluate('1', {}, now=NOW)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for expression in (\n"
        "    LONG + 'a = new String[100]; for (i = 0; i < 100; i += 1) { s += i; a[i] = s; }',\n"
        "    LONG + 'm = new Map(); for (i = 0; i < 100; i += 1) m.put(s + i, s + i);',\n"
        "    LONG + 's.split(\"\")', 'm = new Map(); while (true) m.put(\"\" + new long[25000], new long[25000]);',\n"
        "):\n"
        "    try: evaluate(expression, {}, now=NOW)\n"
        "    except SelError: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 80 * 1024, "kilobytes"
