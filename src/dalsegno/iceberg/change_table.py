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
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from dalsegno.clock import to_millis
from dalsegno.errors import DataError, PlatformError, UnknownName
from dalsegno.hints import Verb, action
from dalsegno.iceberg import avro
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.files import Files
from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads
from dalsegno.iceberg.layout import Layout
from dalsegno.iceberg.manifest_copies import Copy, copies_of
from dalsegno.iceberg.manifests import Take, read_list, write_list
from dalsegno.iceberg.schemas import all_optional
from dalsegno.model.captures import Capture, CapturedTable, Role
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName
from dalsegno.plan.forecast import Cost
from dalsegno.storage_problems import refused

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
_ATTEMPTS = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Contents:
    """The manifests that a change table holds or will hold, and what they add up to."""

    #: How the list that names them is written; None where the source was never written to.
    format: avro.Format | None
    takes: tuple[Take, ...]
    #: None where a writer did not say.
    bytes: int | None
    #: Where the files hold keys alone: each set of columns, by their ids, that some file has.
    keys: tuple[tuple[int, ...], ...] = ()
    #: Whether files may lack values of columns that the source requires by now.
    all_optional: bool = False

    @property
    def data(self) -> tuple[Take, ...]:
        """Those that are read as data; the others name delete files."""
        return tuple(take for take in self.takes if take.manifest.is_data or take.as_data)

    @property
    def cost(self) -> Cost:
        """Rows are those in the files; delete files, if there are any, take some of them away."""
        costs = [take.cost for take in self.data]
        return Cost(sum(cost.files or 0 for cost in costs), sum(cost.rows or 0 for cost in costs), self.bytes)


NO_CONTENTS = Contents(None, (), bytes=0)


@dataclass(frozen=True)
class Target:
    """One of the tables that a capture makes of a source."""

    role: Role
    name: TableName
    #: The folder that the table has for itself.
    folder: str
    #: The state of the source that it shows a part of.
    at: Position

    @classmethod
    def of(cls, captured: CapturedTable, role: Role) -> Target:
        return cls(role, captured.tables[role], captured.folder(role), captured.position(role))


def publish(
    catalog: Catalog,
    source: LoadedTable,
    capture: Capture,
    captured: CapturedTable,
    role: Role,
    contents: Contents,
    threads: int,
) -> Contents:
    """Write a change table's metadata and register it; what it holds then.

    May be repeated after a crash at any point: each attempt writes files under names of its own, and the one that
    registers first wins.
    """
    target = Target.of(captured, role)
    files = catalog.files_of(target.name, target.folder)
    attempt = f"{target.folder}/metadata/{capture.id}-{uuid.uuid4().hex[:12]}"
    layout = Layout(source.metadata, captured.upto.schema_id)
    with _copying():
        files.make_folder(f"{target.folder}/metadata")
        copies = copies_of(source.files, files, layout, contents.takes, attempt, threads)
    published = replace(contents, takes=tuple(Take(copy.manifest) for copy in copies))
    listed_at = None if contents.format is None else f"{attempt}-snap.avro"
    metadata = _metadata(source.metadata, capture, captured, target, published, listed_at)
    if contents.all_optional:
        metadata |= _optional_schemas(metadata)
    if contents.keys:
        metadata |= _reduced_schema(metadata, contents.keys)
    written = {f"{attempt}.metadata.json": json.dumps(metadata, separators=(",", ":")).encode()}
    if contents.format is not None and listed_at is not None:
        header = _list_header(metadata["snapshots"][0])
        written[listed_at] = write_list(contents.format, [copy.manifest for copy in copies], header=header)
    _write(source.files, files, target, copies, written, threads)
    for _ in range(_ATTEMPTS):
        if catalog.register(target.name, f"{attempt}.metadata.json"):
            return published
        found = find(catalog, target.name)
        if found is not None and found.metadata["table-uuid"] != metadata["table-uuid"]:
            _delete(files, target, attempt)
            raise _taken(target, metadata["table-uuid"], found)
        if found is not None and is_intact(found, capture.id, captured, role):
            # A driver that retries says so of its own first attempt, if only the answer to that was lost.
            if not _is_made_by(found, attempt):
                _delete(files, target, attempt)
            return replace(published, takes=published_takes(catalog, target.name))
        if found is not None:
            log.warning(
                "%s was written to by somebody else, so it is made anew; what they made of it: %s",
                target.name,
                found.metadata_location,
            )
            catalog.forget(target.name, metadata_location=found.metadata_location)
    raise PlatformError(
        f"{target.name} could not be registered: others changed it {_ATTEMPTS} times in a row.",
        hint="Find out who writes to it, then run the capture again.",
    )


def remove(catalog: Catalog, capture_id: str, captured: CapturedTable) -> None:
    """Drop the catalog's entries, then delete the files that this capture wrote, known by their names; no others."""
    for role in () if captured.is_view else captured.tables:
        target = Target.of(captured, role)
        forget(catalog, target.name, capture_id)
        files = catalog.files_of(target.name, target.folder)
        found = files.list(target.folder)
        files.delete(*(each for each in found if each.rpartition("/")[2].startswith(f"{capture_id}-")))
        files.remove_empty_folder(target.folder)


def find(catalog: Catalog, name: TableName) -> LoadedTable | None:
    """The table of this name, if there is one."""
    try:
        return catalog.load(name)
    except UnknownName:
        return None


def capture_of(table: LoadedTable) -> str | None:
    """The capture that a table was made by; None if it is no change table."""
    found: str | None = table.metadata.get("properties", {}).get(CAPTURE_ID)
    return found


def is_intact(table: LoadedTable, capture_id: str, captured: CapturedTable, role: Role) -> bool:
    """Whether a table is as this capture has made it: nobody else has committed to it."""
    metadata = table.metadata
    if metadata["table-uuid"] != _table_uuid(capture_id, captured, Target.of(captured, role)):
        return False
    # A commit writes another file; a catalog that moves the file itself leaves all in it as it was.
    is_our_file = table.metadata_location.rpartition("/")[2].startswith(f"{capture_id}-")
    return is_our_file or not (metadata.get("metadata-log") or has_other_rows(table, capture_id, captured, role))


def has_other_rows(table: LoadedTable, capture_id: str, captured: CapturedTable, role: Role) -> bool:
    """Whether a table of this capture, as its uuid says, does not show the snapshot that was made for it."""
    ours = _table_uuid(capture_id, captured, Target.of(captured, role))
    known = [snapshot["snapshot-id"] for snapshot in table.metadata.get("snapshots", ())]
    current = branch_heads(table.metadata).get(MAIN)
    is_as_made = (known, current) in (([], None), ([_snapshot_id(ours)], _snapshot_id(ours)))
    return table.metadata["table-uuid"] == ours and not is_as_made


def forget(catalog: Catalog, name: TableName, capture_id: str) -> None:
    """Drop the catalog's entry of a capture's table, unless the name has passed to another table."""
    try:
        location = catalog.metadata_location(name)
    except UnknownName:
        return
    # Nobody else gives a file such a name. A catalog that moves the file itself leaves its properties as they were.
    if location.rpartition("/")[2].startswith(f"{capture_id}-"):
        catalog.forget(name, metadata_location=location)
        return
    table = find(catalog, name)
    if table is not None and capture_of(table) == capture_id:
        catalog.forget(name, metadata_location=table.metadata_location)


def _table_uuid(capture_id: str, captured: CapturedTable, target: Target) -> str:
    """The same for every attempt, so that an attempt recognises the table of another."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"dalsegno:{capture_id}:{captured.table}:{target.role}"))


def _is_made_by(table: LoadedTable, attempt: str) -> bool:
    """Whether a table consists of files that this attempt wrote; a catalog may have moved the first of them."""
    lists = [str(snapshot["manifest-list"]) for snapshot in table.metadata.get("snapshots", ())]
    return any(location.startswith(attempt) for location in (table.metadata_location, *lists))


def _delete(files: Files, target: Target, attempt: str) -> None:
    """Delete what an attempt wrote that came second."""
    files.delete(*(location for location in files.list(target.folder) if location.startswith(attempt)))


def _taken(target: Target, expected_uuid: str, found: LoadedTable) -> DataError:
    return DataError(
        f"There is a table {target.name} that is not of this capture: expected uuid {expected_uuid}, "
        f"found {found.metadata['table-uuid']}.",
        hint="Rename or drop that table, then run the capture again.",
    )


def _write(
    source: Files, files: Files, target: Target, copies: Sequence[Copy], written: Mapping[str, bytes], threads: int
) -> None:
    """Write all that the table is made of, at once: nobody sees any of it before the table is registered."""
    try:
        with ThreadPoolExecutor(threads) as pool:
            writing = [pool.submit(files.write, location, content) for location, content in written.items()]
            copying = [pool.submit(copy.make, source, files) for copy in copies]
            with _copying():
                for each in copying:
                    each.result()
            for each in writing:
                each.result()
    except OSError as error:
        if (refusal := refused(error, target.name.catalog, f"write the metadata of {target.name}")) is not None:
            raise refusal from error
        raise PlatformError(
            f"The metadata of {target.name} could not be written to {target.folder}: {error}.",
            hint="Check space and rights there, then run the capture again: it goes on with the same range.",
        ) from error


@contextmanager
def _copying() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(
            f"A manifest of the source has vanished while it was captured: {error}.",
            hint="Its history expired.",
            actions=[action("See what is left", Verb.PLAN)],
        ) from error
    except OSError as error:
        raise PlatformError(f"Manifests could not be copied: {error}.", hint="Run the capture again.") from error


def _list_header(snapshot: Mapping[str, Any]) -> dict[str, str]:
    return {
        "snapshot-id": str(snapshot["snapshot-id"]),
        "parent-snapshot-id": "null",
        "sequence-number": str(snapshot.get("sequence-number", 0)),
    }


def published_takes(catalog: Catalog, name: TableName) -> tuple[Take, ...]:
    """What a change table holds, read back from it."""
    table = catalog.load(name)
    snapshots = table.metadata["snapshots"]
    manifests = read_list(table.files, snapshots[0]["manifest-list"]).manifests if snapshots else ()
    return tuple(map(Take, manifests))


def _metadata(
    source: RawMetadata,
    capture: Capture,
    captured: CapturedTable,
    target: Target,
    published: Contents,
    manifest_list: str | None,
) -> dict[str, Any]:
    clone = {key: source[key] for key in _CLONED if key in source}
    clone |= _readable_with(source, captured.upto.schema_id)
    created_ms = to_millis(capture.created_at)
    empty = {
        "table-uuid": _table_uuid(capture.id, captured, target),
        "location": target.folder,
        "last-updated-ms": created_ms,
        "properties": _properties(source, capture, captured, target),
        "snapshots": [],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {},
        "statistics": [],
        "partition-statistics": [],
    }
    if manifest_list is None:
        return clone | empty
    snapshot_id = _snapshot_id(str(empty["table-uuid"]))
    snapshot = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": created_ms,
        "manifest-list": manifest_list,
        "schema-id": captured.upto.schema_id,
        "summary": _summary(captured, published),
    } | _inherited(source, target.at)
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


def _snapshot_id(table_uuid: str) -> int:
    """63 bits of a hash: a positive number, the same for every attempt."""
    return int.from_bytes(hashlib.sha256(table_uuid.encode()).digest()[:8], "big") & _POSITIVE_LONG


def _inherited(source: RawMetadata, at: Position) -> dict[str, Any]:
    """What the change table's snapshot takes over from the one it shows: sequence and row numbers."""
    last = next(s for s in source["snapshots"] if s["snapshot-id"] == at.snapshot_id)
    return {key: last[key] for key in ("sequence-number", "first-row-id", "added-rows") if key in last}


def _properties(source: RawMetadata, capture: Capture, captured: CapturedTable, target: Target) -> dict[str, str]:
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
        "changes": captured.spec.changes,
        "role": target.role,
        "expires-at-ms": to_millis(capture.expires_at),
    }
    ours = {f"{PROPERTY_PREFIX}{key}": str(value) for key, value in said.items() if value is not None}
    return kept | ours | {"gc.enabled": "false", "write.metadata.delete-after-commit.enabled": "false"}


def _summary(captured: CapturedTable, published: Contents) -> dict[str, str]:
    cost = published.cost
    counts = {"data-files": cost.files, "records": cost.rows, "files-size": cost.bytes}
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


def _optional_schemas(metadata: RawMetadata) -> dict[str, Any]:
    """The schemas without the promise that there are no nulls."""
    changed: dict[str, Any] = {"schemas": [all_optional(schema) for schema in metadata["schemas"]]}
    # Format version 1 repeats the current schema in a field of its own.
    return changed | ({"schema": all_optional(metadata["schema"])} if "schema" in metadata else {})


def _reduced_schema(metadata: RawMetadata, keys: Iterable[Iterable[int]]) -> dict[str, Any]:
    """The schema with the columns of keys, and those that partitions are made of; no file need have them all."""
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    kept = set(chain.from_iterable(keys)) | {
        item["source-id"] for spec in metadata["partition-specs"] for item in spec["fields"]
    }
    fields = [{**item, "required": False} for item in schema["fields"] if kept & set(_field_ids({"fields": [item]}))]
    reduced = {key: value for key, value in schema.items() if key != "identifier-field-ids"} | {"fields": fields}
    return {"schemas": [reduced], "sort-orders": [dict(_UNSORTED)], "default-sort-order-id": 0}


def _field_ids(schema: Mapping[str, Any]) -> Iterator[int]:
    for item in schema.get("fields", ()):
        yield item["id"]
        if isinstance(item["type"], Mapping) and item["type"].get("type") == "struct":
            yield from _field_ids(item["type"])
