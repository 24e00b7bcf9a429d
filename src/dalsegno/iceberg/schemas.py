"""Whether files that were written with one schema of a table can be read with another one.

Evolution only ever widens a type. But ``CREATE OR REPLACE TABLE`` gives a column the id of the old one of its name,
whatever its type, and a file knows its columns by their ids: read with the new type, its values become others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RawSchema = Mapping[str, Any]

#: What Iceberg widens, and every engine reads; decimals are compared by their digits.
_PROMOTIONS = {("int", "long"), ("float", "double")}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class _Field:
    """A column at any depth, an element of a list, a key or value of a map."""

    path: str
    #: Of a nested type, which one it is; what is in it are fields of their own.
    kind: str
    required: bool
    #: The id of what it is in; None at the top.
    inside: int | None
    #: What files that are older than the column hold.
    default: Any


def schema_of(metadata: Mapping[str, Any], schema_id: int) -> RawSchema | None:
    """A schema of the table; None if it is no longer known."""
    schemas = metadata.get("schemas") or [metadata["schema"]]
    return next((schema for schema in schemas if schema.get("schema-id", 0) == schema_id), None)


def unreadable(written: RawSchema, reading: RawSchema) -> str | None:
    """The first column whose old values would be read as others, as a sentence; None if there is none."""
    old = dict(_fields(written))
    for field_id, new in _fields(reading):
        before = old.get(field_id)
        if before is None:
            continue
        if not _widens(before.kind, new.kind):
            return f"column {new.path!r} was {before.kind} and is {new.kind} now"
        if before.default != new.default:
            return f"column {new.path!r} had the initial default {before.default!r} and has {new.default!r} now"
    return None


def is_newly_required(written: RawSchema, reading: RawSchema) -> bool:
    """Whether files may lack a value that must be there: readers do not look for a null, and find a zero."""
    old = dict(_fields(written))
    for field_id, new in _fields(reading):
        if not new.required:
            continue
        before = old.get(field_id)
        is_new = before is None and new.default is None and (new.inside is None or new.inside in old)
        if is_new or (before is not None and not before.required):
            return True
    return False


def all_optional(schema: RawSchema) -> dict[str, Any]:
    """The same columns, each of which may be null; then none of them is an identifier."""
    kept = {key: value for key, value in schema.items() if key != "identifier-field-ids"}
    return kept | {"fields": [_optional(item) for item in schema["fields"]]}


def _optional(item: Mapping[str, Any]) -> dict[str, Any]:
    return {**item, "required": False, "type": _optional_type(item["type"])}


def _optional_type(kind: Any) -> Any:
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "struct":
            return {**kind, "fields": [_optional(item) for item in kind["fields"]]}
        case "list":
            return {**kind, "element-required": False, "element": _optional_type(kind["element"])}
    return {**kind, "value-required": False, "value": _optional_type(kind["value"])}


def _widens(old: str, new: str) -> bool:
    if old == new or (old, new) in _PROMOTIONS:
        return True
    digits = [_DECIMAL.fullmatch(kind) for kind in (old, new)]
    if digits[0] is None or digits[1] is None:
        return False
    (precision, scale), (wider, same) = (map(int, found.groups()) for found in digits if found)
    return scale == same and precision <= wider


def _fields(schema: RawSchema, above: str = "", inside: int | None = None) -> Iterator[tuple[int, _Field]]:
    for item in schema["fields"]:
        yield from _field(item["id"], f"{above}{item['name']}", item["type"], item["required"], inside, item)


def _field(
    field_id: int, path: str, kind: Any, required: bool, inside: int | None, item: Mapping[str, Any] | None = None
) -> Iterator[tuple[int, _Field]]:
    default = (item or {}).get("initial-default")
    yield field_id, _Field(path, kind if isinstance(kind, str) else kind["type"], required, inside, default)
    if isinstance(kind, str):
        return
    if kind["type"] == "struct":
        yield from _fields(kind, f"{path}.", field_id)
    for part in ("element", "key", "value"):
        if part in kind:
            must = kind.get(f"{part}-required", True)
            yield from _field(kind[f"{part}-id"], f"{path}.{part}", kind[part], must, field_id)
