"""What is read of refreshes; see ``reading`` for the connections that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.model.refreshes import Considered, Cost, Decision, ReadAs, Refresh, SourceRead, TargetWrite
from dalsegno.model.tables import TableName
from dalsegno.store.reading import Row, one_of, rows


def refreshes_of(connection: Any, target: TableName, *, limit: int, after: str | None = None) -> list[Refresh]:
    """Those of a table that were committed, newest first; those behind one, if that is given by its unit."""
    behind, values = "", {"target": str(target), "limit": limit}
    if after is not None:
        behind = (
            " AND (committed_at, unit_id) < (SELECT committed_at, unit_id FROM refreshes"
            " WHERE unit_id = :after AND target = :target)"
        )
        values["after"] = after
    query = (
        f"SELECT * FROM refreshes WHERE target = :target AND committed_at IS NOT NULL{behind}"
        " ORDER BY committed_at DESC, unit_id DESC LIMIT :limit"
    )
    return _whole(connection, rows(connection, query, **values))


def of_captures(connection: Any, capture_ids: Iterable[str]) -> list[Refresh]:
    """What was done behind captures that are committed; oldest first."""
    condition, values = one_of("capture_id", capture_ids)
    query = f"SELECT * FROM refreshes WHERE {condition} AND committed_at IS NOT NULL ORDER BY committed_at, unit_id"
    return _whole(connection, rows(connection, query, **values))


def strategies_taken(connection: Any, target: TableName, workflow_id: str) -> dict[str, int]:
    """How often the runs of a workflow have refreshed a table by each strategy; the most frequent first."""
    query = (
        "SELECT strategy, count(*) AS number FROM refreshes"
        " WHERE target = :target AND workflow_id = :workflow AND committed_at IS NOT NULL"
        " GROUP BY strategy ORDER BY number DESC, strategy"
    )
    found = rows(connection, query, target=str(target), workflow=workflow_id)
    return {row["strategy"]: row["number"] for row in found}


def details_of(decision: Decision) -> dict[str, Any]:
    """What has no column of its own, as JSON."""
    return {
        "changed": decision.changed,
        "facts": list(decision.facts),
        "considered": [
            {
                "strategy": each.strategy,
                "is_possible": each.is_possible,
                "why": each.why,
                "expected": _cost_values(each.expected),
            }
            for each in decision.considered
        ],
        "expected_cost": _cost_values(decision.expected_cost),
        "full_cost": _cost_values(decision.full_cost),
    }


def decision_values(decision: Decision) -> dict[str, Any]:
    """All of a decision, as JSON; ids of snapshots are texts, because many readers of JSON keep 53 bits."""
    return {
        "target": str(decision.target),
        "query_digest": decision.query_digest,
        "strategy": decision.strategy,
        "why": decision.why,
        "reads": [
            {
                "table": str(each.table),
                "read_as": each.read_as.value,
                "after_snapshot": None if each.after_snapshot is None else str(each.after_snapshot),
                "upto_snapshot": None if each.upto_snapshot is None else str(each.upto_snapshot),
                "files": each.files,
                "rows": each.rows,
                "bytes": each.bytes,
            }
            for each in decision.reads
        ],
        **details_of(decision),
    }


def decision_of(found: Mapping[str, Any]) -> Decision:
    """Read back what ``decision_values`` wrote."""
    reads = tuple(
        SourceRead(
            TableName.of(each["table"]),
            ReadAs(each["read_as"]),
            None if each["after_snapshot"] is None else int(each["after_snapshot"]),
            None if each["upto_snapshot"] is None else int(each["upto_snapshot"]),
            each["files"],
            each["rows"],
            each["bytes"],
        )
        for each in found["reads"]
    )
    return Decision(
        target=TableName.of(found["target"]),
        query_digest=found["query_digest"],
        strategy=found["strategy"],
        why=found["why"],
        reads=reads,
        **_details(found),
    )


def _whole(connection: Any, found: list[Row]) -> list[Refresh]:
    reads, writes = (_by_unit(connection, name, found) for name in ("refresh_reads", "refresh_writes"))
    texts = _by_unit(connection, "work_statements", found, order="number", columns="unit_id, text")
    return [
        Refresh(
            unit_id=row["unit_id"],
            capture_id=row["capture_id"],
            target=TableName.of(row["target"]),
            workflow_id=row["workflow_id"],
            workflow_version=row["workflow_version"],
            run_number=row["run_number"],
            step_id=row["step_id"],
            query_digest=row["query_digest"],
            strategy=row["strategy"],
            why=row["why"],
            reads=tuple(map(_read, reads.get(row["unit_id"], []))),
            writes=tuple(map(_write, writes.get(row["unit_id"], []))),
            cost=Cost(row["bytes_read"], row["bytes_written"], row["seconds"]),
            at=row["committed_at"],
            statements=tuple(each["text"] for each in texts.get(row["unit_id"], [])),
            **_details(row["details"]),
        )
        for row in found
    ]


def _by_unit(
    connection: Any, table: str, found: list[Row], *, order: str = "ordinal", columns: str = "*"
) -> dict[str, list[Row]]:
    condition, values = one_of("unit_id", [row["unit_id"] for row in found])
    query = f"SELECT {columns} FROM {table} WHERE {condition} ORDER BY {order}"
    grouped: dict[str, list[Row]] = {}
    for row in rows(connection, query, **values):
        grouped.setdefault(row["unit_id"], []).append(row)
    return grouped


def _read(row: Row) -> SourceRead:
    return SourceRead(
        TableName.of(row["table_name"]),
        ReadAs(row["read_as"]),
        row["after_snapshot_id"],
        row["upto_snapshot_id"],
        row["file_count"],
        row["row_count"],
        row["byte_count"],
    )


def _write(row: Row) -> TargetWrite:
    return TargetWrite(
        TableName.of(row["table_name"]),
        row["before_snapshot_id"],
        tuple(map(int, row["snapshots"])),
        row["added_rows"],
        row["removed_rows"],
        row["added_bytes"],
        row["is_companion"],
    )


def _details(found: Mapping[str, Any]) -> dict[str, Any]:
    considered = tuple(
        Considered(each["strategy"], each["is_possible"], each["why"], _cost(each["expected"]))
        for each in found["considered"]
    )
    return {
        "changed": found["changed"],
        "facts": tuple(found["facts"]),
        "considered": considered,
        "expected_cost": _cost(found["expected_cost"]),
        "full_cost": _cost(found["full_cost"]),
    }


def _cost_values(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {"bytes_read": cost.bytes_read, "bytes_written": cost.bytes_written, "seconds": cost.seconds}


def _cost(found: Mapping[str, Any] | None) -> Cost | None:
    return None if found is None else Cost(found["bytes_read"], found["bytes_written"], found["seconds"])
