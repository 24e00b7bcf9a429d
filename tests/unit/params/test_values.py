"""What can become what."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.errors import ParamError
from dalsegno.model.params import ParamType
from dalsegno.spec.params.values import cast, type_of


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        (5, ParamType.STRING, "5"),
        (1.5, ParamType.STRING, "1.5"),
        (True, ParamType.STRING, "true"),
        ("61", ParamType.LONG, 61),
        ("-7", ParamType.LONG, -7),
        (2**63 - 1, ParamType.LONG, 2**63 - 1),
        (122, ParamType.DOUBLE, 122.0),
        ("122", ParamType.DOUBLE, 122.0),
        ("1e3", ParamType.DOUBLE, 1000.0),
        ("trUe", ParamType.BOOLEAN, True),
        ("FALSE", ParamType.BOOLEAN, False),
        ([1, 2, 3], ParamType.STRING_ARRAY, ["1", "2", "3"]),
        ([True], ParamType.STRING_ARRAY, ["true"]),
        ([1, 2.5], ParamType.DOUBLE_ARRAY, [1.0, 2.5]),
        (["1"], ParamType.LONG_ARRAY, [1]),
        ("[1, 2]", ParamType.LONG_ARRAY, [1, 2]),
        ('{"a": 1}', ParamType.STRING_MAP, {"a": "1"}),
        ({"a": [1], "b": {"c": 2.0}}, ParamType.MAP, {"a": [1], "b": {"c": 2.0}}),
    ],
)
def test_casts(value: Any, to: ParamType, expected: Any) -> None:
    found = cast(value, to)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "to"),
    [
        (0.01, ParamType.LONG),
        ("foo", ParamType.LONG),
        ("1_000", ParamType.LONG),
        ("٣", ParamType.LONG),
        (True, ParamType.LONG),
        (2**63, ParamType.LONG),
        ("NaN", ParamType.DOUBLE),
        (float("inf"), ParamType.DOUBLE),
        (0.01, ParamType.BOOLEAN),
        ("yes", ParamType.BOOLEAN),
        ([1], ParamType.STRING),
        ("a", ParamType.STRING_ARRAY),
        ([[1]], ParamType.STRING_ARRAY),
        ([1, "a"], ParamType.LONG_ARRAY),
        ({"a": None}, ParamType.MAP),
        (None, ParamType.STRING),
        ("[" * 100_000, ParamType.STRING_ARRAY),
        ("9" * 10_000, ParamType.LONG),
    ],
)
def test_what_cannot_be_cast(value: Any, to: ParamType) -> None:
    with pytest.raises(ParamError):
        cast(value, to)


@pytest.mark.parametrize("value", [None, [None], [1, "a"], [[1]], object()])
def test_what_is_of_no_type(value: Any) -> None:
    with pytest.raises(ParamError):
        type_of(value)
