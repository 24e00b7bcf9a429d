"""A change table: a cloned metadata file, copied manifests, and one register call.

The clone keeps the source's schemas, partition specs, sort orders, name mapping and sequence numbers, so field ids,
partition tuples and row ids mean what they mean in the source; creating a table from a schema would renumber them and
read other columns' values. The table appears complete, with one register call, or not at all.

It borrows data files, so nothing that cleans up after a table may believe it owns them: ``gc.enabled`` is false, its
metadata lies in a folder of its own, and it points at copies of manifests, never at the source's.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.errors import DataError, PlatformError
from dalsegno.iceberg import avro
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.history import RawMetadata
from dalsegno.iceberg.manifests import ListField, Manifest, keep_added, read_list, write_list
from dalsegno.model.captures import Capture, CapturedTable

#: Everything else of the source's metadata is left behind: snapshots, references, logs, statistics, keys.
_CLONED = (
    "format-version",
    "last-column-id",
    "schema",
    "schemas",
    "partition-spec",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
    "last-sequence-number",
    "next-row-id",
)
_CLONED_PROPERTIES = ("schema.name-mapping.default",)
PROPERTY_PREFIX = "dalsegno."
CAPTURE_ID = f"{PROPERTY_PREFIX}capture-id"
_UNSORTED: Mapping[str, Any] = {"order-id": 0, "fields": []}
_POSITIVE_LONG = (1 << 63) - 1


@dataclass(frozen=True)
class Contents:
    """The manifests that a change table will hold, and what they add up to."""

    #: How the list that names them is written; None where the source was never written to.
    format: avro.Format | None
    manifests: tuple[Manifest, ...]
    #: Whether every entry counts, not only the ones that a manifest's own snapshot added.
    is_whole: bool
    files: int
    rows: int
    #: None where a writer did not say.
    bytes: int | None


def publish(
    catalog: Catalog,
    source: LoadedTable,
    capture: Capture,
    captured: CapturedTable,
    contents: Contents,
    threads: int,
) -> Contents:
    """Write the change table's metadata and register it; what was published, counted.

    May be repeated after a crash at any point: each attempt writes files under names of its own, and the one that
    registers first wins.
    """
    files = catalog.files_at(captured.location)
    attempt = f"{captured.location}/metadata/{capture.id}-{uuid.uuid4().hex[:12]}"
    published = _copy_manifests(source.files, files, contents, attempt, threads)
    metadata = _metadata(source.metadata, capture, captured, published, f"{attempt}-snap.avro")
    with _writing(captured):
        if contents.format is not None:
            listed = write_list(contents.format, published.manifests, header=_list_header(metadata["snapshots"][0]))
            files.write(f"{attempt}-snap.avro", listed)
        files.write(f"{attempt}.metadata.json", json.dumps(metadata, separators=(",", ":")).encode())
    if catalog.register(captured.change_table, f"{attempt}.metadata.json"):
        return published
    return replace(published, manifests=_adopt(catalog, files, captured, metadata["table-uuid"], attempt))


def remove(catalog: Catalog, capture_id: str, captured: CapturedTable) -> None:
    """Drop the catalog's entry, then delete the files that this capture wrote, known by their names; no others."""
    catalog.forget(captured.change_table)
    files = catalog.files_at(captured.location)
    for location in files.list(captured.location):
        if location.rpartition("/")[2].startswith(f"{capture_id}-"):
            files.delete(location)
    files.remove_empty_folder(captured.location)


def table_uuid(capture_id: str, captured: CapturedTable) -> str:
    """The same for every attempt, so that an attempt recognises the table of another."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"dalsegno:{capture_id}:{captured.table}"))


def _adopt(
    catalog: Catalog, files: Files, captured: CapturedTable, expected_uuid: str, attempt: str
) -> tuple[Manifest, ...]:
    """Take the table of the attempt that came first: its manifests; this attempt's files are deleted."""
    found = catalog.load(captured.change_table).metadata
    for location in files.list(captured.location):
        if location.startswith(attempt):
            files.delete(location)
    if found["table-uuid"] != expected_uuid:
        raise DataError(
            f"There is a table {captured.change_table} that is not of this capture: expected uuid {expected_uuid}, "
            f"found {found['table-uuid']}.",
            hint="Rename or drop that table, then run the capture again.",
        )
    return published_manifests(catalog, captured)


@contextmanager
def _writing(captured: CapturedTable) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PlatformError(
            f"The metadata of {captured.change_table} could not be written to {captured.location}: {error}.",
            hint="Check space and rights there, then run the capture again: it goes on with the same range.",
        ) from error


def _copy_manifests(source: Files, files: Files, contents: Contents, attempt: str, threads: int) -> Contents:
    def take(item: tuple[int, Manifest]) -> Manifest | None:
        number, manifest = item
        path = f"{attempt}-m{number}.avro"
        if manifest.only_adds or contents.is_whole:
            source.copy(manifest.path, path, into=files)
            return Manifest({**manifest.values, ListField.PATH: path})
        kept = keep_added(source, manifest)
        if not kept.files:
            return None
        files.write(path, kept.content)
        return manifest.reduced(path, len(kept.content), kept.files, kept.rows)

    try:
        files.make_folder(attempt.rpartition("/")[0])
        with ThreadPoolExecutor(threads) as pool:
            taken = [manifest for manifest in pool.map(take, enumerate(contents.manifests)) if manifest]
    except FileNotFoundError as error:
        raise DataError(
            f"A manifest of the source has vanished while it was captured: {error}.",
            hint="Its history expired. See what is left: dalsegno plan",
        ) from error
    except OSError as error:
        raise PlatformError(f"Manifests could not be copied: {error}.", hint="Run the capture again.") from error
    if contents.is_whole:
        return replace(contents, manifests=tuple(taken))
    return replace(
        contents,
        manifests=tuple(taken),
        files=sum(manifest.added_files or 0 for manifest in taken),
        rows=sum(manifest.added_rows or 0 for manifest in taken),
    )


def _list_header(snapshot: Mapping[str, Any]) -> dict[str, str]:
    return {
        "snapshot-id": str(snapshot["snapshot-id"]),
        "parent-snapshot-id": "null",
        "sequence-number": str(snapshot.get("sequence-number", 0)),
    }


def published_manifests(catalog: Catalog, captured: CapturedTable) -> tuple[Manifest, ...]:
    """What a change table holds, read back from it."""
    table = catalog.load(captured.change_table)
    snapshots = table.metadata["snapshots"]
    return read_list(table.files, snapshots[0]["manifest-list"]).manifests if snapshots else ()


def _metadata(
    source: RawMetadata, capture: Capture, captured: CapturedTable, contents: Contents, manifest_list: str
) -> dict[str, Any]:
    clone = {key: source[key] for key in _CLONED if key in source}
    clone |= _readable_with(source, captured.upto.schema_id)
    created_ms = to_millis(capture.created_at)
    empty = {
        "table-uuid": table_uuid(capture.id, captured),
        "location": captured.location,
        "last-updated-ms": created_ms,
        "properties": _properties(source, capture, captured),
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {},
        "statistics": [],
        "partition-statistics": [],
    }
    if contents.format is None:
        return clone | empty
    # 63 bits of a hash: a positive number, the same for every attempt.
    digest = hashlib.sha256(str(empty["table-uuid"]).encode()).digest()
    snapshot_id = int.from_bytes(digest[:8], "big") & _POSITIVE_LONG
    snapshot = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": created_ms,
        "manifest-list": manifest_list,
        "schema-id": captured.upto.schema_id,
        "summary": _summary(captured, contents),
    } | _inherited(source, captured)
    return (
        clone
        | empty
        | {
            "current-snapshot-id": snapshot_id,
            "snapshots": [snapshot],
            "snapshot-log": [{"snapshot-id": snapshot_id, "timestamp-ms": created_ms}],
            "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        }
    )


def _inherited(source: RawMetadata, captured: CapturedTable) -> dict[str, Any]:
    """What the change table's snapshot takes over from the last one of the range: sequence and row numbers."""
    last = next(s for s in source["snapshots"] if s["snapshot-id"] == captured.upto.snapshot_id)
    return {key: last[key] for key in ("sequence-number", "first-row-id", "added-rows") if key in last}


def _properties(source: RawMetadata, capture: Capture, captured: CapturedTable) -> dict[str, str]:
    kept = {key: source["properties"][key] for key in _CLONED_PROPERTIES if key in source.get("properties", {})}
    said = {
        "capture-id": capture.id,
        "consumer": capture.consumer,
        "source-table": captured.table,
        "source-uuid": captured.upto.table_uuid,
        "source-branch": captured.upto.branch,
        "after-snapshot-id": captured.after.snapshot_id,
        "after-sequence-number": captured.after.sequence_number,
        "upto-snapshot-id": captured.upto.snapshot_id,
        "upto-sequence-number": captured.upto.sequence_number,
        "expires-at-ms": to_millis(capture.expires_at),
    }
    ours = {f"{PROPERTY_PREFIX}{key}": str(value) for key, value in said.items() if value is not None}
    return kept | ours | {"gc.enabled": "false", "write.metadata.delete-after-commit.enabled": "false"}


def _summary(captured: CapturedTable, contents: Contents) -> dict[str, str]:
    counts = {"data-files": contents.files, "records": contents.rows, "files-size": contents.bytes}
    known = {key: str(value) for key, value in counts.items() if value is not None}
    return (
        {"operation": "append"}
        | {f"added-{key}": value for key, value in known.items()}
        | {f"total-{key}": value for key, value in known.items()}
        | {f"{PROPERTY_PREFIX}source-table": str(captured.table)}
    )


def _readable_with(source: RawMetadata, schema_id: int) -> dict[str, Any]:
    """The schema of the range's end, and a default spec and sort order that only use its columns."""
    schemas: Sequence[Mapping[str, Any]] = source.get("schemas") or [source["schema"]]
    schema = next(schema for schema in schemas if schema.get("schema-id", 0) == schema_id)
    if schema_id == source.get("current-schema-id", 0):
        return {key: source[key] for key in ("current-schema-id",) if key in source}
    columns = set(_field_ids(schema))
    specs = list(source.get("partition-specs") or [{"spec-id": 0, "fields": source["partition-spec"]}])
    bound = [spec for spec in specs if all(item["source-id"] in columns for item in spec["fields"])]
    if not bound:
        bound = [{"spec-id": max(spec["spec-id"] for spec in specs) + 1, "fields": []}]
        specs += bound
    orders = list(source.get("sort-orders", ()))
    if not any(order["order-id"] == 0 for order in orders):
        orders.append(dict(_UNSORTED))
    default = max(bound, key=lambda spec: int(spec["spec-id"]))
    changed: dict[str, Any] = {
        "current-schema-id": schema_id,
        "partition-specs": specs,
        "default-spec-id": default["spec-id"],
        "sort-orders": orders,
        "default-sort-order-id": 0,
    }
    # Format version 1 repeats the current schema and spec in fields of their own.
    if source["format-version"] == 1:
        changed |= {"schema": schema, "partition-spec": default["fields"]}
    return changed


def _field_ids(schema: Mapping[str, Any]) -> Iterator[int]:
    for item in schema.get("fields", ()):
        yield item["id"]
        if isinstance(item["type"], Mapping) and item["type"].get("type") == "struct":
            yield from _field_ids(item["type"])
