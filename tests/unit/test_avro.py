"""Avro files keep what they hold, whatever it is."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalsegno.iceberg import avro

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "field-id": 1, "default": None},
        {
            "name": "amount",
            "type": {"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
            "field-id": 2,
        },
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}, "field-id": 3},
    ],
}
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "status": st.integers(-(2**31), 2**31 - 1),
            # Days far outside of what Python's dates can hold: a writer may have them.
            "day": st.none() | st.integers(-(2**31), 2**31 - 1),
            "amount": st.binary(min_size=5, max_size=5),
            "at": st.integers(-(2**63), 2**63 - 1),
        }
    )
)


@given(RECORDS, st.sampled_from(["null", "deflate", "zstandard", "snappy"]))
def test_what_is_written_is_read(records: list[dict[str, Any]], codec: str) -> None:
    content = avro.write(avro.Format(SCHEMA, {"content": "data", "größe": "ü"}, codec), records)
    format_, found = avro.read(io.BytesIO(content))
    assert list(found) == records
    assert (format_.schema, format_.codec) == (SCHEMA, codec)
    assert format_.metadata == {"content": "data", "größe": "ü"}
    assert format_.names() == {0: "status", 1: "day", 2: "amount", 3: "at"}


def test_others_read_what_is_written() -> None:
    records = [{"status": 1, "day": 20000, "amount": b"\0\0\0\0\x78", "at": 1_000_000}]
    content = avro.write(avro.Format(SCHEMA, {}, "deflate"), records)
    found: Any = next(iter(fastavro.reader(io.BytesIO(content))))
    assert (found["day"].isoformat(), str(found["amount"]), found["at"].isoformat()) == (
        "2024-10-04",
        "1.20",
        "1970-01-01T00:00:01+00:00",
    )


def test_what_is_no_avro_is_said() -> None:
    with pytest.raises(ValueError, match="not an Avro file"):
        avro.read(io.BytesIO(b"PAR1 and so on"))
