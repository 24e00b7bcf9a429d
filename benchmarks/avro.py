"""Avro files of very many records, written a thousand times faster than one by one.

One record is encoded as a template with holes, repeated, and the holes of all copies are filled with random bytes,
column by column. It works because what fills a hole is always as long as the hole.
"""

from __future__ import annotations

import io
import random
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import fastavro

#: Bytes of a block before compression, as Iceberg's Java library writes them.
_BLOCK_BYTES = 64_000
_SYNC_BYTES = 16

Block = tuple[int, bytes]

_HEXADECIMAL = bytes(b"0123456789abcdef"[byte & 15] for byte in range(256))
_ANY = bytes(range(256))
# The bytes of a variable-length number: the first is even, so that the number is positive; all but the last say that
# more follow; the last is never small, so that all numbers are equally long.
_FIRST = bytes(byte & 0x7E | 0x80 for byte in range(256))
_MIDDLE = bytes(byte | 0x80 for byte in range(256))
_LAST = bytes(byte & 0x3F | 0x40 for byte in range(256))
_SEVEN_BITS = bytes(byte & 0x7F for byte in range(256))


@dataclass(frozen=True)
class Hole:
    """A place in a template, known by the bytes that stand there; each byte has a table of what it may become."""

    marker: bytes
    tables: tuple[bytes, ...]


@dataclass
class Holes:
    """Hands out values that mark holes."""

    all: list[Hole] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def number(self, width: int) -> int:
        """A number that takes so many bytes."""
        encoded = bytes((0x80 | 2 * next(self._numbers), *([0xFF] * (width - 2)), 0x7F))
        self.all.append(Hole(encoded, (_FIRST, *([_MIDDLE] * (width - 2)), _LAST)))
        return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(encoded)) // 2

    def four_bytes(self) -> bytes:
        marker = bytes((0xF1, 0xE2, next(self._numbers), 0xD3))
        self.all.append(Hole(marker, (_ANY,) * len(marker)))
        return marker

    def digits(self, length: int) -> str:
        """Hexadecimal digits."""
        marker = f"{next(self._numbers):_>{length}}"
        self.all.append(Hole(marker.encode(), (_HEXADECIMAL,) * length))
        return marker


@dataclass(frozen=True)
class Filled:
    """Records, encoded one after another."""

    content: bytes
    record_bytes: int
    #: The sum of all that filled each hole; it means something for numbers only.
    sums: tuple[int, ...]

    def blocks(self) -> Iterator[Block]:
        step = max(_BLOCK_BYTES // self.record_bytes, 1) * self.record_bytes
        for start in range(0, len(self.content), step):
            block = self.content[start : start + step]
            yield len(block) // self.record_bytes, block


def fill(template: bytes, holes: Sequence[Hole], records: int, source: random.Random) -> Filled:
    """So many copies of the template, each filled with bytes of its own."""
    content, sums = bytearray(template * records), []
    for hole in holes:
        columns = [source.randbytes(records).translate(table) for table in hole.tables]
        for offset in _occurrences(template, hole.marker):
            for place, column in enumerate(columns, offset):
                content[place :: len(template)] = column
        sums.append(sum(sum(c.translate(_SEVEN_BITS)) << 7 * place for place, c in enumerate(columns)) // 2)
    return Filled(bytes(content), len(template), tuple(sums))


def _occurrences(template: bytes, marker: bytes) -> list[int]:
    found = [match.start() for match in re.finditer(re.escape(marker), template)]
    assert found, f"the template has no {marker!r}"
    return found


class Writer:
    """Writes Avro files of one schema."""

    def __init__(self, schema: Any, metadata: Mapping[str, str]) -> None:
        self.schema, self.metadata = schema, metadata
        self._physical = fastavro.parse_schema(_without_logical_types(schema))

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """One record, its values given as they are stored."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._physical, record)
        return out.getvalue()

    def file(self, blocks: Iterable[Block], **metadata: str) -> bytes:
        out = io.BytesIO()
        header = {**self.metadata, **{key.replace("_", "-"): value for key, value in metadata.items()}}
        fastavro.writer(out, self.schema, [], codec="deflate", metadata=header)
        sync = out.getvalue()[-_SYNC_BYTES:]
        for records, content in blocks:
            # Iceberg compresses harder, which would take most of the time here and hardly change the size.
            packed = zlib.compress(content, 1, -zlib.MAX_WBITS)
            for number in (records, len(packed)):
                fastavro.schemaless_writer(out, "long", number)
            out.write(packed + sync)
        return out.getvalue()


def blocks_of(records: Sequence[bytes]) -> Iterator[Block]:
    """Records that were encoded one by one, in blocks."""
    step = max(_BLOCK_BYTES // max(map(len, records)), 1) if records else 1
    for start in range(0, len(records), step):
        block = records[start : start + step]
        yield len(block), b"".join(block)


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return [_without_logical_types(item) for item in schema] if isinstance(schema, list) else schema
