"""A table's metadata file → its history, as the rest of dalsegno speaks of it.

The raw JSON is kept beside the model: PyIceberg's own model cannot write format version 3, and a change table must keep
every detail of its source.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

from dalsegno.errors import UnknownName, UnsupportedTable
from dalsegno.model.snapshots import History, Operation, Snapshot

MAIN = "main"
_GZIP_MAGIC = b"\x1f\x8b"
#: What older writers say for "no snapshot".
_NO_SNAPSHOT = -1
_OPERATIONS = {operation.value: operation for operation in Operation}

RawMetadata = Mapping[str, Any]


def parse_metadata(content: bytes) -> dict[str, Any]:
    """The JSON of a metadata file, compressed or not."""
    text = gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    metadata: dict[str, Any] = json.loads(text)
    return metadata


def history_of(metadata: RawMetadata, branch: str = MAIN, *, table: object = "the table") -> History:
    """The snapshots a table knows and where a branch stands, or a refusal of what cannot be read safely."""
    _refuse_encryption(metadata, table)
    snapshots = {raw["snapshot-id"]: _snapshot(raw, table) for raw in metadata.get("snapshots", ())}
    head_id = branch_heads(metadata).get(branch)
    if head_id is None and branch != MAIN:
        raise UnknownName(
            f"{table} has no branch {branch!r}; it has {', '.join(sorted(branch_heads(metadata))) or 'none'}."
        )
    return History(
        table_uuid=metadata["table-uuid"],
        format_version=metadata["format-version"],
        branch=branch,
        head=snapshots[head_id] if head_id is not None else None,
        current_schema_id=metadata.get("current-schema-id", 0),
        snapshots=snapshots,
    )


def branch_heads(metadata: RawMetadata) -> dict[str, int]:
    """Each branch and the snapshot it points at."""
    heads = {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items() if ref.get("type") == "branch"}
    current = metadata.get("current-snapshot-id")
    if MAIN not in heads and current is not None and current != _NO_SNAPSHOT:
        heads[MAIN] = current
    return heads


def _snapshot(raw: Mapping[str, Any], table: object) -> Snapshot:
    if "manifest-list" not in raw:
        raise UnsupportedTable(
            f"{table}: snapshot {raw['snapshot-id']} lists its manifests inline, as only very old writers did.",
            hint="Rewrite the table's manifests once (CALL system.rewrite_manifests), then expire that snapshot.",
        )
    if raw.get("key-id") is not None:
        raise _encrypted(table)
    summary = raw.get("summary") or {}
    return Snapshot(
        id=raw["snapshot-id"],
        parent_id=raw.get("parent-snapshot-id"),
        sequence_number=raw.get("sequence-number", 0),
        timestamp_ms=raw["timestamp-ms"],
        operation=_OPERATIONS.get(summary.get("operation", "")),
        schema_id=raw.get("schema-id"),
        manifest_list=raw["manifest-list"],
        summary=summary,
        has_row_ids=raw.get("first-row-id") is not None,
    )


def _refuse_encryption(metadata: RawMetadata, table: object) -> None:
    if metadata.get("encryption-keys") or "encryption.key-id" in metadata.get("properties", {}):
        raise _encrypted(table)


def _encrypted(table: object) -> UnsupportedTable:
    return UnsupportedTable(
        f"{table} is encrypted: a change table would have to carry its keys, so dalsegno does not capture it.",
        hint="Capture a table that is not encrypted.",
    )
