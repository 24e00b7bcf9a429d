"""References in texts: what Maestro's own tests expect, and what is ours."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.model.params import Param, ParamDefinition, ParamType
from dalsegno.spec.params.literals import (
    all_references,
    as_definition,
    escaped,
    interpolate,
    interpolate_all,
    references,
)
from dalsegno.spec.params.values import text_of, type_of

LONG_NAME = "maybe.its.a/data/1/artifact.or-something.3.14159"
VALUES: dict[str, Any] = {
    "var": 0,
    "var1": True,
    "var2": "2",
    LONG_NAME: 3.0,
    "foo": "$bar",
    "bar": "$baz",
    "baz": "$foo",
    "strArray": ["one", "two", "three"],
    "intArray": [1, 2, 3],
    "boolArray": [True, False, True],
    "doubleArray": [1.1, 2.2, 3.3],
    "strMap": {"key": "$value"},
}


def value_of(name: str) -> str:
    return text_of(VALUES[name])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test $var $var $var1 $var2 ${" + LONG_NAME + "}", "test 0 0 true 2 3.0"),
        ("$$var$var $var1$$var1 $$$var2 $$$$var2", "$var0 true$var1 $2 $$var2"),
        (
            "${var}$${var} $${" + LONG_NAME + "}${" + LONG_NAME + "} $$${var1} $$$${var1}",
            "0${var} ${" + LONG_NAME + "}3.0 $true $${var1}",
        ),
        ("$foo$bar$baz", "$bar$baz$foo"),
        ("no variables$$ $$$$ in this string", "no variables$ $$ in this string"),
        (
            "test $strArray $intArray $boolArray $doubleArray",
            'test ["one","two","three"] [1,2,3] [true,false,true] [1.1,2.2,3.3]',
        ),
        ("test $strMap", 'test {"key":"$value"}'),
        ("$var-1", "0-1"),
        ("costs 5$, $1, $(pwd), ${1}, ${_hidden} and $_hidden", "costs 5$, $1, $(pwd), ${1}, ${_hidden} and $_hidden"),
        ("$S3{s3://bucket/${var}} $FILE{query.sql} ${var}", "$S3{s3://bucket/${var}} $FILE{query.sql} 0"),
        ("$S3 is no file", None),
        ("nothing", "nothing"),
    ],
)
def test_interpolation(text: str, expected: str | None) -> None:
    if expected is None:
        assert references(text) == ["S3"]
    else:
        assert interpolate(text, value_of) == expected


def test_references_are_listed_once_in_their_order() -> None:
    assert references("$var2 ${var} $$no $var $S3{x} ${job.1.x}") == ["var2", "var", "job.1.x"]


def test_lists_and_maps() -> None:
    literal = ["test $var", {"$var": "$var2", "bar": "bat"}]
    assert interpolate_all(literal, value_of) == ["test 0", {"0": "2", "bar": "bat"}]
    assert all_references(literal) == ["var", "var2"]


def test_escaped_text_is_itself() -> None:
    text = "$a ${b} $$c 5$"
    assert interpolate(escaped(text), value_of) == text


def test_a_value_as_literal() -> None:
    value = {"a": "$x", "n": 1, "deep": {"list": ["$y"], "texts": {"$k": "$v"}}}
    definition = as_definition(value)
    assert definition.type is ParamType.MAP
    assert definition.value["a"] == ParamDefinition(ParamType.STRING, "$$x")
    assert definition.value["deep"].value["texts"].value == {"$$k": "$$v"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), (1e7, "1.0E7"), (12345678.9, "1.23456789E7"), (0.001, "0.001"), (1e-4, "1.0E-4"), (-3, "-3")],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert text_of(value) == text


def test_types_of_plain_data() -> None:
    for param in (
        Param(ParamType.STRING_ARRAY, []),
        Param(ParamType.DOUBLE_ARRAY, [1, 2.5]),
        Param(ParamType.MAP, {}),
        Param(ParamType.STRING_MAP, {"a": "b"}),
        Param(ParamType.MAP, {"a": 1}),
    ):
        assert type_of(param.value) is param.type
