"""The manifests of a change table: copies of the source's, under names of its own.

In an object store each file costs a round trip to make, to read and to remove. Small manifests are therefore read and
written again rather than copied there, since what they name is looked at anyway; where there are many of them, as
after many small commits, they become a few. Their entries stay what they are: what they inherited is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from dalsegno.iceberg import avro
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.layout import Layout, UnreadableBound
from dalsegno.iceberg.manifests import Kept, ListField, Manifest, Take, keep, prefetch, rewrite

#: Up to this size a manifest is small: it holds some hundred files at most.
_SMALL = 64 << 10
#: From so many small ones on they are merged, and no more than so many bytes of them into one.
MANY = 16
_MERGED_BYTES = 2 << 20
#: How many bytes of merged manifests are held in memory until all that the table is made of is written at once.
_HELD_BYTES = 16 << 20


@dataclass(frozen=True)
class Copy:
    """A manifest of a change table, as its list will name it."""

    manifest: Manifest
    #: What is still to be written.
    content: bytes | None = None
    #: Or the manifest that it is a copy of, byte for byte; neither: it is written already.
    origin: str | None = None

    def make(self, source: Files, files: Files) -> None:
        if self.origin is not None:
            source.copy(self.origin, self.manifest.path, into=files)
        elif self.content is not None:
            files.write(self.manifest.path, self.content, is_read_next=True)

    def without_content(self, source: Files, files: Files) -> Copy:
        """The same, written: what is large need not be held in memory."""
        self.make(source, files)
        return replace(self, content=None, origin=None)


def copies_of(
    source: Files, files: Files, layout: Layout, takes: Sequence[Take], attempt: str, threads: int
) -> list[Copy]:
    """What is to be made of the manifests that are taken; what is needed for it is read, large ones are written."""
    small = [not source.is_local and _is_small(take) for take in takes]
    are_merged = sum(small) >= MANY
    single = [(take, is_small) for take, is_small in zip(takes, small, strict=True) if not (is_small and are_merged)]

    def copy(item: tuple[int, tuple[Take, bool]]) -> Copy | None:
        number, (take, is_small) = item
        made = _copy(source, take, f"{attempt}-m{number}.avro", is_read=is_small)
        is_large = made is not None and len(made.content or b"") > _SMALL
        return made.without_content(source, files) if made and is_large else made

    with ThreadPoolExecutor(threads) as pool:
        copies = [made for made in pool.map(copy, enumerate(single)) if made]
    if not are_merged:
        return copies
    held = 0
    merging = [take.manifest for take, is_small in zip(takes, small, strict=True) if is_small]
    for number, alike in enumerate(_alike(source, merging), start=len(single)):
        merged = _merged(layout, alike, f"{attempt}-m{number}.avro")
        held += len(merged.content or b"")
        copies.append(merged if held <= _HELD_BYTES else merged.without_content(source, files))
    return copies


def _is_small(take: Take) -> bool:
    length = take.manifest.length
    return take.is_whole and take.manifest.is_data and length is not None and length <= _SMALL


def _copy(source: Files, take: Take, path: str, *, is_read: bool) -> Copy | None:
    """None: no file is left of those that are wanted."""
    manifest = take.manifest
    if not take.is_whole:
        rewritten = rewrite(source, manifest, take.wants, as_data=take.as_data)
        is_empty = not rewritten.added_files + rewritten.existing_files
        return None if is_empty else Copy(manifest.reduced(path, rewritten), rewritten.content)
    copied = Manifest({**manifest.values, ListField.PATH: path})
    if not is_read:
        return Copy(copied, origin=manifest.path)
    with source.reading(manifest.path, manifest.length) as stream:
        return Copy(copied, stream.read())


def _alike(source: Files, manifests: Sequence[Manifest]) -> Iterator[list[tuple[Manifest, Kept]]]:
    """Manifests that can become one, with their live entries: each group has one spec, schema and way of writing."""
    batches = list(_batches(manifests))
    for number, batch in enumerate(batches):
        # The next ones come in while these are looked at.
        prefetch(source, (manifest for ahead in batches[number : number + 2] for manifest in ahead))
        groups: dict[Any, list[tuple[Manifest, Kept]]] = {}
        for manifest in batch:
            kept = keep(source, manifest, lambda *_: True)
            has_row_ids = manifest.values.get(ListField.FIRST_ROW_ID) is not None
            groups.setdefault((manifest.spec_id, has_row_ids, _Written(kept.format)), []).append((manifest, kept))
        yield from groups.values()


class _Written:
    """How a manifest is written, as a key: equal if all of it is."""

    def __init__(self, format_: avro.Format) -> None:
        self._format = format_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Written) and self._format == other._format

    def __hash__(self) -> int:
        return hash((self._format.codec, tuple(sorted(self._format.metadata.items()))))


def _batches(manifests: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    batch: list[Manifest] = []
    size = 0
    for manifest in manifests:
        batch.append(manifest)
        size += manifest.length or 0
        if size >= _MERGED_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _merged(layout: Layout, group: Sequence[tuple[Manifest, Kept]], path: str) -> Copy:
    """One manifest with the entries of all."""
    manifests, kept = [manifest for manifest, _ in group], [each for _, each in group]
    content = avro.write(kept[0].format, chain.from_iterable(each.records for each in kept))
    changed: dict[int, Any] = {
        ListField.PATH: path,
        ListField.LENGTH: len(content),
        ListField.ADDED_FILES: sum(each.added_files for each in kept),
        ListField.ADDED_ROWS: sum(each.added_rows for each in kept),
        ListField.EXISTING_FILES: sum(each.existing_files for each in kept),
        ListField.EXISTING_ROWS: sum(each.existing_rows for each in kept),
        ListField.DELETED_FILES: 0,
        ListField.DELETED_ROWS: 0,
        ListField.PARTITIONS: _bounds(layout, manifests),
    }
    for field, pick in (
        (ListField.SEQUENCE_NUMBER, max),
        (ListField.MIN_SEQUENCE_NUMBER, min),
        (ListField.FIRST_ROW_ID, min),
    ):
        known = [value for each in manifests if (value := each.values.get(field)) is not None]
        if known:
            changed[field] = pick(known)
    return Copy(Manifest({**manifests[-1].values, **changed}), content)


def _bounds(layout: Layout, manifests: Sequence[Manifest]) -> list[dict[str, Any]] | None:
    """Of each partition field: the bounds over all files; None if those of one manifest aren't known."""
    if not all(manifest.partitions for manifest in manifests):
        return None
    spec_id = manifests[0].spec_id
    columns = zip(*(manifest.partitions or () for manifest in manifests), strict=True)
    try:
        return [_bound(partial(layout.partition_bound, spec_id, at), column) for at, column in enumerate(columns)]
    except (UnreadableBound, TypeError):
        return None


def _bound(read: Callable[[bytes], Any], summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    widest: dict[str, Any] = {}
    for end, pick in (("lower_bound", min), ("upper_bound", max)):
        found = [value for each in summaries if (value := each[end]) is not None]
        widest[end] = pick(found, key=read) if found else None
    nans = [each.get("contains_nan") for each in summaries]
    # Not every writer says whether there is a NaN.
    has_nan = True if any(nans) else None if None in nans else False
    return {**summaries[0], **widest, "contains_null": any(each["contains_null"] for each in summaries)} | (
        {"contains_nan": has_nan} if "contains_nan" in summaries[0] else {}
    )
