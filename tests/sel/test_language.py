"""Statements, types, scope, and where we differ from Maestro on purpose."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dalsegno.sel import Type, Value, evaluate, names_of, parse
from tests.sel.support import NOW, refusal, result, type_of_result


def test_the_last_statement_is_the_result() -> None:
    assert result("x = 1; x + 1") == 2
    assert result("{ 1; 2; }") == 2
    assert result("return 1; 2;") == 1
    assert type_of_result("if (true) 5; else 6;") == "VOID"
    assert type_of_result("int x = 1;") == "VOID"
    assert type_of_result("") == "VOID"
    assert type_of_result("unknown") == "NULL"


def test_throwing() -> None:
    assert refusal("if (1 + 1 == 2) throw 'no luck'; else return 0;").message == (
        "line 1, column 17: the expression throws: no luck."
    )
    assert "throw takes a string" in refusal("throw 1;").message


@pytest.mark.parametrize(
    ("expression", "value", "in_maestro"),
    [
        ("false && 1 / 0 == 1", False, "evaluates both sides"),
        ("true || 1 / 0 == 1", True, "evaluates both sides"),
        ("s = 0; for (int i = 0; i < 3; i += 1) { int x = 1; x += 1; s += x; } s", 6, "changes the literal"),
        ("int x = 1; int y = x; y += 1; x", 1, "makes y another name of x"),
        ("m = new Map(); m.put('k', 5); m['k']", 5, "allows params['k'] only"),
        ("-9223372036854775808", -(2**63), "has no such number"),
        ("String.valueOf(-3000000000)", "-3000000000", "cuts it to 32 bits"),
        ("m = new Map(); s = 'k'; m.put(s, 1); s = 'x'; m", {"k": 1}, "changes the key along"),
        ("new long[]{1, 2}", [1, 2], "wants a semicolon"),
        ("1 + 1 // two", 2, "takes its semicolon for a comment"),
        ("'' + new long[]{1, 2}", "[1, 2]", "shows an address in memory"),
        ("u = UUID.randomUUID(); u.toString().length()", 36, "cannot assign a UUID"),
    ],
)
def test_differences_from_maestro(expression: str, value: Any, in_maestro: str) -> None:
    assert result(expression) == value, in_maestro


def test_what_a_map_holds_is_the_variable_itself() -> None:
    """As in Maestro, whose own tests say so."""
    assert result("x = new Map(); y = 123; x.put('foo', y); y = 111; x") == {"foo": 111}


def test_variables_keep_their_type() -> None:
    refused = refusal("x = 1; x = 1.5;")
    assert refused.message == "line 1, column 8: DOUBLE cannot be assigned to LONG."
    assert refused.hint == "Use longValue()."
    assert result("int a = 1; String a = 'x'; a") == "x"
    assert refusal("double x = 1;").hint == "Write it with a point: 1.0."


def test_places_are_told_by_line_and_column() -> None:
    refused = refusal("x = 1;\n  y = x +\n   true;")
    assert (refused.line, refused.column) == (2, 9)
    assert refused.message == "line 2, column 9: LONG + BOOLEAN is not defined."
    assert (refusal("\\u0031 + 'a'.foo()").line, refusal("\\u0031 + 'a'.foo()").column) == (1, 14)


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("'a'.substrin(1)", "Did you mean substring?"),
        ("new Datetime()", "Did you mean DateTime?"),
        ("i++", "Write i += 1."),
        ("a & b", "Write && for a logical and; there are no operators on bits."),
        ("'a' < 'b'", "Use compareTo: a.compareTo(b) < 0."),
        ("x.length", "A name that was given no value is NULL: look at its spelling."),
        ("DateTimeZone.forID('Amerca/Los_Angeles')", "Did you mean America/Los_Angeles?"),
        ("'a'.length", "It is a method: length()."),
        ("foo(1)", "Methods belong to a value or a class."),
        ("1 2", "Statements end with a semicolon."),
        ("if (true) int x = 1;", "Put it in braces."),
        ("'abc", "End it with ' on the same line."),
    ],
)
def test_hints(expression: str, hint: str) -> None:
    assert refusal(expression).hint == hint


@pytest.mark.parametrize("word", ["break", "continue"])
def test_leaving_a_loop_needs_a_loop(word: str) -> None:
    assert f"{word} stands outside of a loop" in refusal(f"{word};").message


def test_parameters_are_copies() -> None:
    given: dict[str, Any] = {"k": "original"}
    items = [1, 2, 3]
    assert result("cfg.put('k', 'tampered'); xs[0] = 99; cfg.get('k') + xs[0]", cfg=given, xs=items) == "tampered99"
    assert (given, items) == ({"k": "original"}, [1, 2, 3])
    assert result("cfg.put('k', 'x'); params.get('cfg').get('k')", cfg=given) == "original"


def test_parameters_by_name_field_and_index() -> None:
    assert result("a + params.a + params['a'] + params.get('a')", a=1) == 4
    assert result("params.containsKey('a') && !params.containsKey('b')", a=1) is True
    assert evaluate("params['not-a-name']", {"not-a-name": Value(Type.LONG, 5)}, now=NOW).value == 5


class Steps:
    """An extension that answers with what it was asked."""

    def call(self, method: str, arguments: tuple[str, ...]) -> Value:
        if method == "getFromForeach":
            return Value(Type.LONG_ARRAY, [1, 2, 3])
        if method != "getFromStep":
            raise LookupError(f"there is no method {method}")
        return Value(Type.STRING, "/".join(arguments))


def test_the_caller_answers_for_runs_and_steps() -> None:
    def asked(expression: str) -> Any:
        return evaluate(expression, {}, now=NOW, extension=Steps()).value

    assert asked("params.getFromStep('job1', 'p')") == "job1/p"
    assert asked("params.getFromForeach('f', 's', 'p')[1] + 1") == 3
    with pytest.raises(Exception, match=r"column 8: there is no method getFromNowhere\."):
        asked("params.getFromNowhere()")
    with pytest.raises(Exception, match="expected STRING, found LONG"):
        asked("params.getFromStep(1)")
    assert "need a run" in str(refusal("params.getFromStep('a', 'b')"))


def test_time_and_chance_are_handed_in() -> None:
    assert result("System.currentTimeMillis()") == 1546300812345
    assert result("new DateTime()") == "2019-01-01T00:00:12.345Z"
    draws = {evaluate("Math.random()", {}, now=NOW, random=Random(1)).value for _ in range(3)}
    assert len(draws) == 1


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("x + 1", {"x"}),
        ("x = 1; x + y", {"y"}),
        ("x = x + 1", {"x"}),
        ("x += 1", {"x"}),
        ("int x = y; x", {"y"}),
        ("for (i = 0; i < n; i += 1) s += a[i]; s", {"n", "s", "a"}),
        ("Util.dateIntsBetween(start, 20200101, 1)", {"start"}),
        ("params['a'] + params.get('b') + params.getFromStep('c', 'd')", {"a", "b"}),
        ("new DateTime(t).withZone(DateTimeZone.forID(z))", {"t", "z"}),
    ],
)
def test_names_of(expression: str, names: set[str]) -> None:
    assert names_of(expression) == names


def test_parsing_alone_finds_mistakes_of_syntax() -> None:
    with pytest.raises(Exception, match="line 1, column 5: expected an expression, found the end"):
        parse("1 + ")
    parse("unknown.method()")


def test_a_program_can_be_evaluated_again() -> None:
    program = parse("n = n + 1; n")
    values = [evaluate(program, {"n": Value(Type.LONG, n)}, now=NOW).value for n in (1, 1, 5)]
    assert values == [2, 2, 6]


def test_results_that_no_parameter_can_be() -> None:
    assert "holds DATETIME under 'd'" in refusal("m = new Map(); m.put('d', new DateTime(0)); m").message
    assert type_of_result("new DateTime(0)") == "DATETIME"
