"""Which files can be read with which schema."""

from __future__ import annotations

from typing import Any

import pytest

from dalsegno.iceberg.schemas import all_optional, is_newly_required, unreadable


def schema(kind: Any, *, required: bool = False, field_id: int = 1, default: Any = None) -> dict[str, Any]:
    filled = {} if default is None else {"initial-default": default}
    return {"type": "struct", "fields": [{"id": field_id, "name": "v", "type": kind, "required": required, **filled}]}


def struct(kind: Any, *, required: bool = False, field_id: int = 4) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"id": field_id, "name": "a", "type": kind, "required": required}]}


def listed(kind: Any, *, required: bool = False, field_id: int = 5) -> dict[str, Any]:
    return {"type": "list", "element-id": field_id, "element": kind, "element-required": required}


def mapped(key: Any, value: Any, *, required: bool = False) -> dict[str, Any]:
    return {"type": "map", "key-id": 6, "key": key, "value-id": 7, "value": value, "value-required": required}


NESTED = [
    lambda kind: kind,
    lambda kind: struct(kind, field_id=14),
    lambda kind: listed(kind, field_id=15),
    lambda kind: listed(struct(kind, field_id=14), field_id=15),
]
WIDER = [("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(38, 2)"), ("decimal(9,2)", "decimal(9, 2)")]
OTHERS = [
    ("long", "int"),
    ("int", "string"),
    ("int", "date"),
    ("int", "double"),
    ("date", "timestamp"),
    ("timestamp", "timestamptz"),
    ("timestamp", "timestamp_ns"),
    ("string", "binary"),
    ("uuid", "fixed[16]"),
    ("decimal(9, 2)", "decimal(9, 3)"),
    ("decimal(9, 2)", "decimal(8, 2)"),
    ("int", struct("int")),
    (listed("int"), "int"),
    (mapped("int", "int"), mapped("long", "string")),
]


@pytest.mark.parametrize("inside", NESTED)
@pytest.mark.parametrize(("old", "new"), WIDER)
def test_wider_types_read_old_files(inside: Any, old: Any, new: Any) -> None:
    assert unreadable(schema(inside(old)), schema(inside(new))) is None
    assert unreadable(schema(inside(new)), schema(inside(new))) is None


@pytest.mark.parametrize("inside", NESTED)
@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_other_types_do_not(inside: Any, old: Any, new: Any) -> None:
    assert "was" in str(unreadable(schema(inside(old)), schema(inside(new))))


def test_another_column_of_the_same_name_is_another_column() -> None:
    assert unreadable(schema("int"), schema("string", field_id=9)) is None


def test_another_value_for_what_is_missing() -> None:
    old, new = schema("int", default=7), schema("int")
    assert unreadable(old, new) and unreadable(new, old) and unreadable(old, old) is None


@pytest.mark.parametrize("of", [struct, listed, lambda kind, required: mapped("int", kind, required=required)])
def test_values_that_must_be_there_by_now(of: Any) -> None:
    for old, new in [
        (schema("int"), schema("int", required=True)),
        (schema(of("int", required=False)), schema(of("int", required=True))),
        (schema("int"), schema("int", field_id=9, required=True)),
    ]:
        assert is_newly_required(old, new) and not is_newly_required(new, new)
        assert not is_newly_required(old, all_optional(new))
    assert not is_newly_required(schema("int"), schema("int", field_id=9, required=True, default=0))
    assert not is_newly_required(schema("int"), schema(of("int", required=True), field_id=9))
