"""Manifest lists and manifests as their writers left them.

Files are read and written with the schema embedded in each, so one piece of code serves format versions 1, 2 and 3 and
loses nothing that a future writer adds. Values stay physical (a date is its number of days, a decimal its bytes): the
logical types are hidden from the decoder, because turning values into Python objects and back costs time and could
lose what Python cannot hold. Fields are found by Iceberg's field ids, since writers disagree on some names.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, cast

import fastavro

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
#: What ``avro.*`` keys of a header are not ours to copy: the writer sets them.
_RESERVED = "avro."

Record = dict[str, Any]
#: Fields by their ids, and the wanted ones inside of each; None: all of them.
Wanted = Mapping[int, "Wanted | None"]


@dataclass(frozen=True)
class Format:
    """How an Avro file is written: its schema, its own metadata and its compression."""

    schema: dict[str, Any]
    metadata: Mapping[str, str]
    codec: str

    def names(self) -> dict[int, str]:
        """Iceberg's id of each field at the top level → the name it has in this file."""
        return {entry["field-id"]: entry["name"] for entry in self.schema["fields"]}


def read(source: BinaryIO, wanted: Wanted | None = None) -> tuple[Format, Iterator[Record]]:
    """The file's format and its records, decoded block by block as they are asked for.

    With some fields alone it takes half of the time.
    """
    header, sync = _read_header(source)
    schema, physical_schema = _schemas(header["avro.schema"])
    physical = dict(header) | {"avro.schema": physical_schema}
    schema = _with_only(schema, wanted)
    records = fastavro.reader(
        cast(Any, _Chained(_header_bytes(physical, sync), source)),
        reader_schema=None if wanted is None else _without_logical_types(schema),
    )
    metadata = {key: value for key, value in header.items() if not key.startswith(_RESERVED)}
    return Format(schema, metadata, header.get("avro.codec", "null")), cast(Iterator[Record], records)


def write(target: Format, records: Iterable[Record]) -> bytes:
    """The bytes of a file of that format."""
    out = io.BytesIO()
    fastavro.writer(
        out,
        _without_logical_types(target.schema),
        records,
        codec=target.codec,
        metadata=dict(target.metadata),
    )
    out.seek(0)
    header, sync = _read_header(out)
    header["avro.schema"] = json.dumps(target.schema)
    return _header_bytes(header, sync) + out.read()


@lru_cache(maxsize=64)
def _schemas(text: str) -> tuple[dict[str, Any], str]:
    """A schema, and as the decoder gets it. Most manifests of a table have the same; nobody changes it."""
    schema = json.loads(text)
    return schema, json.dumps(_without_logical_types(schema))


def _with_only(schema: dict[str, Any], wanted: Wanted | None) -> dict[str, Any]:
    if wanted is None:
        return schema
    fields = [
        entry if (inside := wanted[entry["field-id"]]) is None else {**entry, "type": _with_only(entry["type"], inside)}
        for entry in schema["fields"]
        if entry["field-id"] in wanted
    ]
    return {**schema, "fields": fields}


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(item) for item in schema]
    return schema


class _Chained:
    """A header of our making, then the rest of a file: what the decoder reads from."""

    def __init__(self, head: bytes, tail: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._tail = tail

    def read(self, size: int = -1) -> bytes:
        chunk = self._head.read(size)
        if size < 0:
            return chunk + self._tail.read()
        return chunk if len(chunk) == size else chunk + self._tail.read(size - len(chunk))


def _read_header(source: BinaryIO) -> tuple[dict[str, str], bytes]:
    if source.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("not an Avro file")
    header: dict[str, str] = {}
    while count := _read_long(source):
        if count < 0:
            _read_long(source)
        for _ in range(abs(count)):
            key = source.read(_read_long(source)).decode()
            header[key] = source.read(_read_long(source)).decode()
    return header, source.read(_SYNC_BYTES)


def _header_bytes(header: Mapping[str, str], sync: bytes) -> bytes:
    parts = [_MAGIC, _long_bytes(len(header))]
    for key, value in header.items():
        for text in (key.encode(), value.encode()):
            parts += [_long_bytes(len(text)), text]
    return b"".join((*parts, _long_bytes(0), sync))


def _read_long(source: BinaryIO) -> int:
    number, shift = 0, 0
    while True:
        (byte,) = source.read(1)
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the bit that says whether more bytes follow
            return (number >> 1) ^ -(number & 1)


def _long_bytes(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - what fits in one byte
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
