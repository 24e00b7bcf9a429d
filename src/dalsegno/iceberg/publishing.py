"""Branches on which atomic steps write, and the one move of the main branch that publishes what is there.

Each try has a branch of its own name, so nothing that an earlier try left in Spark can get into it. The move is
conditional on the head that the try began with. Whoever is not sure whether it was made looks at the main branch: the
head of the try is in its line, or it is not.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from dalsegno.clock import to_millis, utc_now
from dalsegno.errors import DataError, PlatformError
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange, LoadedTable, Ref
from dalsegno.iceberg.evidence import ATOMIC_BRANCH, Absent, Unclear, Verdict, Written, line
from dalsegno.iceberg.history import MAIN, RawMetadata, branch_heads
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import TableState

#: Spark leads a session's statements to a branch only in tables that allow it.
WAP = "write.wap.enabled"
#: Expiry removes a branch that nobody comes back to.
_LIFETIME = timedelta(days=7)
_ATTEMPTS = 8

IsOurs = Callable[[Mapping[str, str]], bool]


class Moved(Exception):
    """Somebody else has committed to the main branch since the try began."""


def branches_of(work_id: str) -> str:
    """What the names of all branches of one piece of work begin with."""
    return f"{ATOMIC_BRANCH}{hashlib.sha256(work_id.encode()).hexdigest()[:20]}_"


def new_branch(work_id: str) -> str:
    return f"{branches_of(work_id)}{secrets.token_hex(4)}"


def verdict(metadata: RawMetadata | None, before: TableState, head: int | None) -> Verdict:
    """Whether the head of a try was published; None: the try did not come so far."""
    if head is None:
        return Absent()
    if metadata is None or metadata["table-uuid"] != before.uuid:
        return Unclear("the table is gone, was renamed, or was replaced by another")
    base = before.heads.get(MAIN)
    parent = branch_heads(metadata).get(MAIN)
    for raw in line(metadata, parent):
        if raw["snapshot-id"] == head:
            return Written(head)
        if raw["snapshot-id"] == base:
            return Absent()
        parent = raw.get("parent-snapshot-id")
    if base is None and parent is None:
        return Absent()
    return Unclear(f"snapshot {base}, where 'main' stood before, was expired or rolled back")


def allows_branches(metadata: RawMetadata) -> bool:
    """Whether Spark directs statements to a branch of the table, in sessions that say so."""
    return str(metadata.get("properties", {}).get(WAP)).lower() == "true"


def is_published(table: LoadedTable, work_id: str, heads: Collection[int], is_ours: IsOurs) -> bool:
    """Whether the main branch has one of these heads of tries, or that of a branch that is left of one.

    ``DataError`` if it has something else of the work: then nobody can say whether that is all of it.
    """
    found = _of_work(table.metadata, branch_heads(table.metadata).get(MAIN), is_ours)
    left = [head for name, head in branch_heads(table.metadata).items() if name.startswith(branches_of(work_id))]
    tried = {*heads, *(head for head in left if _of_work(table.metadata, head, is_ours))}
    main = {raw["snapshot-id"] for raw in line(table.metadata, branch_heads(table.metadata).get(MAIN))}
    if tried & main:
        return True
    if found:
        raise DataError(
            f"{table.name} has snapshot {found[0]} of this work in its main branch, and nobody can say whether that is "
            "all of it.",
            hint="Roll the table back to the snapshot before that one, or restore the newer store if you restored an "
            "older copy of it.",
        )
    return False


def _of_work(metadata: RawMetadata, head: int | None, is_ours: IsOurs) -> list[int]:
    return [raw["snapshot-id"] for raw in line(metadata, head) if is_ours(raw.get("summary") or {})]


def stage(catalog: Catalog, table: LoadedTable, branch: str) -> LoadedTable:
    """Make a branch where the main one is; a table without snapshots gets it with the first write.

    ``Moved``: the main branch is not where it was in ``table`` any longer.
    """
    base = branch_heads(table.metadata).get(MAIN)
    if base is None:
        return table
    made = next(raw["timestamp-ms"] for raw in table.metadata["snapshots"] if raw["snapshot-id"] == base)
    # Its age counts from the time of its newest snapshot.
    age = to_millis(utc_now()) - made + round(_LIFETIME.total_seconds() * 1000)
    ref = {"snapshot-id": base, "type": "branch", "max-ref-age-ms": max(age, 1)}
    for _ in range(_ATTEMPTS):
        try:
            return catalog.set_ref(table, branch, ref)
        except ConcurrentChange:
            table = catalog.load(table.name)
            if branch_heads(table.metadata).get(MAIN) != base:
                raise Moved from None
    raise _too_busy(table.name)


def head_of(
    table: LoadedTable, branch: str, before: TableState, last: int | None, is_published: Callable[[LoadedTable], bool]
) -> int | None:
    """Where the branch is after a statement; it must go on from ``last``. ``Moved`` if the main branch did."""
    metadata, base = table.metadata, before.heads.get(MAIN)
    if metadata["table-uuid"] != before.uuid:
        raise DataError(f"Somebody has replaced {table.name} while an atomic step wrote to a branch of it.")
    if branch_heads(metadata).get(MAIN) != base:
        # Raises if one of our statements went astray, which must not be taken for a stranger's.
        is_published(table)
        raise Moved
    if not allows_branches(metadata):
        raise PlatformError(f"Somebody has switched {WAP} of {table.name} off, and an atomic step needs it.")
    head = branch_heads(metadata).get(branch)
    if head == last:
        return head
    way = list(line(metadata, head))
    ends_there = way and way[-1].get("parent-snapshot-id") is None if last is None else False
    if not ends_there and all(raw["snapshot-id"] != last for raw in way):
        raise PlatformError(f"Somebody has removed or changed the branch {branch!r}, which an atomic step writes to.")
    return head


def publish(catalog: Catalog, name: TableName, before: TableState, head: int) -> None:
    """Move the main branch to the head of a try; ``Moved`` if it is not where the try began."""
    for _ in range(_ATTEMPTS):
        table = catalog.load(name)
        if isinstance(verdict(table.metadata, before, head), Written):
            return
        if table.metadata["table-uuid"] != before.uuid or branch_heads(table.metadata).get(MAIN) != before.heads.get(
            MAIN
        ):
            raise Moved
        main: Ref = table.metadata.get("refs", {}).get(MAIN, {"type": "branch"})
        try:
            catalog.set_ref(table, MAIN, {**main, "snapshot-id": head})
        except ConcurrentChange:
            continue
        return
    raise _too_busy(name)


def remove_branches(catalog: Catalog, name: TableName, work_id: str) -> None:
    """Remove the branches of all tries of one piece of work."""
    table = catalog.load(name)
    for _ in range(_ATTEMPTS):
        left = [each for each in branch_heads(table.metadata) if each.startswith(branches_of(work_id))]
        if not left:
            return
        try:
            for each in left:
                table = catalog.set_ref(table, each, None)
        except ConcurrentChange:
            table = catalog.load(name)


def _too_busy(name: TableName) -> PlatformError:
    return PlatformError(f"{name} was changed by others {_ATTEMPTS} times in a row.")
