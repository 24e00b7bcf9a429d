"""What partition specs say is what PyIceberg reads from them."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField as TheirField
from pyiceberg.transforms import IdentityTransform, TruncateTransform, UnknownTransform, VoidTransform
from pyiceberg.types import DateType, IcebergType, LongType, StringType, TimestampType

from dalsegno.iceberg.layout import Layout, UnreadableBound, read_bound
from dalsegno.iceberg.partition_specs import partition_specs

CASES: list[tuple[str, IcebergType]] = [
    ("identity", StringType()),
    ("identity", LongType()),
    ("bucket[16]", LongType()),
    ("truncate[4]", StringType()),
    ("year", DateType()),
    ("month", DateType()),
    ("day", TimestampType()),
    ("hour", TimestampType()),
    ("void", LongType()),
    ("zorder", LongType()),
]


def table(transform: str, **field: Any) -> dict[str, Any]:
    fields = [{"field-id": 1000, "name": "p", "transform": transform, **field}]
    return {"partition-specs": [{"spec-id": 3, "fields": fields}]}


@pytest.mark.parametrize(("transform", "source"), CASES, ids=str)
def test_a_field_is_as_pyiceberg_reads_it(transform: str, source: IcebergType) -> None:
    metadata = table(transform, **{"source-id": 7})
    ((field,),) = partition_specs(metadata).values()
    theirs = TheirField.model_validate(metadata["partition-specs"][0]["fields"][0])
    assert (field.source_id, field.name) == (theirs.source_id, theirs.name)
    assert field.transform == str(theirs.transform) or isinstance(theirs.transform, UnknownTransform)
    assert field.result_type(source) == theirs.transform.result_type(source)
    assert field.is_identity == isinstance(theirs.transform, IdentityTransform)
    assert field.is_void == isinstance(theirs.transform, VoidTransform)
    assert field.keeps_values == isinstance(theirs.transform, IdentityTransform | TruncateTransform)
    assert field.unit == (transform if transform in ("year", "month", "day", "hour") else None)


def test_specs_of_all_formats() -> None:
    """Version 1 has one spec without an id; version 3 may name the source in a list."""
    first = {"partition-spec": [{"name": "p", "transform": "identity", "source-id": 1, "field-id": 1000}]}
    assert [field.name for field in partition_specs(first)[0]] == ["p"]
    assert partition_specs(table("identity", **{"source-ids": [7]}))[3][0].source_id == 7
    assert partition_specs({"partition-specs": [{"spec-id": 0, "fields": []}]}) == {0: ()}


def test_an_unpartitioned_spec() -> None:
    schema = {"schema-id": 0, "type": "struct", "fields": []}
    layout = Layout({**table("void", **{"source-id": 1}), "schemas": [schema]}, 0)
    assert layout.is_unpartitioned(3)


@pytest.mark.parametrize(("kind", "bound"), [(LongType(), b"\1\2\3"), (StringType(), b"\xff"), (DateType(), b"")])
def test_a_bound_of_another_type_is_unreadable(kind: IcebergType, bound: bytes) -> None:
    with pytest.raises(UnreadableBound):
        read_bound(kind, bound)


def test_a_mistake_of_ours_is_not_taken_for_an_unreadable_bound() -> None:
    with pytest.raises(TypeError):
        read_bound(LongType(), "text")  # type: ignore[arg-type] # the mistake
