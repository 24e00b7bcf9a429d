"""A partition is called new or re-opened as a look at every older file would tell; with a limit, rightly or not at all.

What manifest lists say of partitions saves most looks. It may be wider than the live files (files get removed), or be
left out; it must never make a difference.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import IntegerType

from dalsegno.iceberg.entries import FileEntry
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifests import ListField, Manifest
from dalsegno.iceberg.partitions import Novelty, touched_partitions

Values = tuple[int | None, ...]
INTEGER = IntegerType()
COLUMNS = ("first", "second")


@dataclass(frozen=True)
class Older:
    """A manifest that was live at the checkpoint: the partitions of its files."""

    live: list[Values]
    #: Of files that were removed, which its bounds still cover.
    removed: list[Values]
    has_bounds: bool

    def manifest(self, number: int) -> Manifest:
        columns = zip(*self.live, *self.removed, strict=True)
        return Manifest(
            {
                ListField.PATH: str(number),
                ListField.SPEC_ID: 0,
                ListField.CONTENT: 0,
                ListField.ADDED_FILES: len(self.live),
                ListField.EXISTING_FILES: 0,
                ListField.DELETED_FILES: len(self.removed),
                ListField.PARTITIONS: list(map(bounds, columns)) if self.has_bounds else None,
            }
        )


def bounds(column: Values) -> dict[str, bool | bytes | None]:
    known = [value for value in column if value is not None]
    return {
        "contains_null": None in column,
        "lower_bound": to_bytes(INTEGER, min(known)) if known else None,
        "upper_bound": to_bytes(INTEGER, max(known)) if known else None,
    }


@dataclass(frozen=True)
class Past:
    """What was there at a checkpoint, and which partitions are touched after it."""

    width: int
    older: list[Older]
    touched: list[Values]

    def layout(self) -> Layout:
        names = COLUMNS[: self.width]
        columns = [{"id": id_, "name": name, "required": False, "type": "int"} for id_, name in enumerate(names, 1)]
        fields = [
            {"source-id": id_, "field-id": 999 + id_, "name": name, "transform": "identity"}
            for id_, name in enumerate(names, 1)
        ]
        schema = {"type": "struct", "schema-id": 0, "fields": columns}
        return Layout({"schemas": [schema], "partition-specs": [{"spec-id": 0, "fields": fields}]}, 0)

    def truth(self) -> dict[Values, Novelty]:
        seen = {values for each in self.older for values in each.live}
        return {values: Novelty.REOPENED if values in seen else Novelty.NEW for values in self.touched}

    def told(self, most: int | None = None) -> tuple[dict[Values, Novelty], int]:
        """What is told of each touched partition, and after a look at how many older files."""
        looks = 0

        def entries_of(manifest: Manifest) -> Iterator[FileEntry]:
            nonlocal looks
            for each in entries(self.older[int(manifest.path)].live):
                looks += 1
                yield each

        before = [each.manifest(number) for number, each in enumerate(self.older)]
        limit = sys.maxsize if most is None else most
        found = touched_partitions(self.layout(), entries(self.touched), before, entries_of, most_entries=limit)
        return {tuple(each.values.values()): each.novelty for each in found}, looks


def entries(partitions: Sequence[Values]) -> Iterator[FileEntry]:
    for values in partitions:
        yield FileEntry("", 0, 1, 1, 0, values, 1, 1, {}, {}, {}, {}, {})


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    width = draw(st.integers(1, len(COLUMNS)))
    values = st.tuples(*[st.integers(0, 5) | st.none()] * width)
    older = st.builds(
        Older,
        live=st.lists(values, min_size=1, max_size=4),
        removed=st.just([]) | st.lists(values, max_size=2),
        has_bounds=st.integers(0, 9).map(bool),
    )
    return Past(width, draw(st.lists(older, max_size=4)), draw(st.lists(values, min_size=1, max_size=3, unique=True)))


@settings(max_examples=300)
@given(pasts())
def test_new_and_reopened_are_told_apart(past: Past) -> None:
    assert past.told()[0] == past.truth()


@settings(max_examples=300)
@given(pasts(), st.integers(0, 6))
def test_a_limit_is_kept_and_leaves_only_doubt(past: Past, most: int) -> None:
    told, looks = past.told(most)
    truth = past.truth()
    assert looks <= most
    assert told.keys() == truth.keys()
    assert all(novelty in (truth[values], Novelty.UNKNOWN) for values, novelty in told.items())
