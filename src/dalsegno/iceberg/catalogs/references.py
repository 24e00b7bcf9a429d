"""A table's metadata file with another reference, for catalogs that have clients write it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from dalsegno.clock import to_millis, utc_now
from dalsegno.iceberg.catalogs.catalog import LoadedTable, Ref
from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads

_DEFAULT_PREVIOUS_VERSIONS = 100
#: What a table without rows says its current snapshot is.
_NO_SNAPSHOT = -1


def with_reference(table: LoadedTable, ref_name: str, ref: Ref | None) -> dict[str, Any]:
    """The table's metadata with one reference set or removed, and nothing else changed."""
    old = table.metadata
    refs = dict(old.get("refs", {}))
    if MAIN not in refs and MAIN in branch_heads(old):
        refs[MAIN] = {"snapshot-id": branch_heads(old)[MAIN], "type": "branch"}
    if ref is None:
        refs.pop(ref_name, None)
    else:
        refs[ref_name] = dict(ref)
    log = [
        *old.get("metadata-log", ()),
        {"metadata-file": table.metadata_location, "timestamp-ms": old["last-updated-ms"]},
    ]
    keep = int(old.get("properties", {}).get("write.metadata.previous-versions-max", _DEFAULT_PREVIOUS_VERSIONS))
    # The time of the last update stays: the rows did not change, and readers must not see it go backwards.
    changed = dict(old) | {"refs": refs, "metadata-log": log[-max(keep, 1) :]}
    return changed | _moved_main(old, ref) if ref_name == MAIN else changed


def _moved_main(old: RawMetadata, ref: Ref | None) -> dict[str, Any]:
    """What else changes with the main branch: the rows that readers see."""
    now = max(to_millis(utc_now()), old["last-updated-ms"] + 1)
    if ref is None:
        return {"current-snapshot-id": _NO_SNAPSHOT, "last-updated-ms": now}
    log = [*old.get("snapshot-log", ()), {"timestamp-ms": now, "snapshot-id": ref["snapshot-id"]}]
    return {"current-snapshot-id": ref["snapshot-id"], "last-updated-ms": now, "snapshot-log": log}


def next_metadata_location(table: LoadedTable) -> str:
    folder, _, file_name = table.metadata_location.rpartition("/")
    number = file_name.partition("-")[0]
    version = int(number) + 1 if number.isdecimal() else 0
    suffix = ".gz.metadata.json" if ".gz." in file_name else ".metadata.json"
    return f"{folder}/{version:05d}-{uuid4()}{suffix}"
