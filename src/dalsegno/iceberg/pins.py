"""The branch that keeps unprocessed history from expiring.

Expiry keeps, for every branch, its newest snapshots: as many as ``min-snapshots-to-keep`` says. One branch per consumer
that points at the head of what was captured, and keeps as many snapshots as lie between it and the checkpoint,
therefore holds the whole range and the checkpoint itself. Its own age counts from the time of the snapshot it points
at, not from its creation, so that is added. A consumer that never comes back stops pinning when its lifetime is
over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, takewhile

from dalsegno.errors import PlatformError, StorageRefused
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange, LoadedTable, Ref
from dalsegno.model.snapshots import History, Position

_ATTEMPTS = 8


@dataclass(frozen=True)
class Pin:
    """Whether a range is held, and if not, why."""

    is_held: bool
    note: str


def branch_name(consumer: str) -> str:
    """The consumer's own branch: two consumers must never share one, so the name is taken as it is."""
    return f"dalsegno_{consumer}"


def _tag_name(consumer: str) -> str:
    """No consumer's name has a colon in it, so no branch is called so."""
    return f"{branch_name(consumer)}:aside"


def pin(
    catalog: Catalog, table: LoadedTable, consumer: str, after: Position, *, now_ms: int, lifetime: timedelta
) -> tuple[LoadedTable, Pin]:
    """Hold everything from ``after`` (itself included) to the source branch's head; the table as it is then.

    What lies before ``after`` is let go of: the pin moves along with the checkpoint.
    """
    if not catalog.settings.pin:
        return table, Pin(False, f"not pinned: catalog {catalog.settings.name!r} is set to pin = false")
    lifetime_ms = round(lifetime.total_seconds() * 1000)

    def wanted(loaded: LoadedTable, existing: Ref | None) -> Ref | None:
        history = loaded.history(after.branch)
        if history.head is None:
            return existing
        kept = len(list(takewhile(lambda s: s.id != after.snapshot_id, history.ancestors(history.head)))) + 1
        age = now_ms - history.head.timestamp_ms
        if existing and _holds(existing, history.head.id, kept, age + lifetime_ms // 2):
            return existing
        return _branch(history.head.id, kept, age + lifetime_ms)

    def wanted_aside(loaded: LoadedTable, existing: Ref | None) -> Ref | None:
        """A checkpoint that a rollback left aside is on no branch: a tag of its own holds it, until it moves on."""
        history = loaded.history(after.branch)
        aside = history.snapshots.get(after.snapshot_id) if after.snapshot_id is not None else None
        if aside is None or any(snapshot.id == aside.id for snapshot in history.ancestors(history.head)):
            return None
        age = now_ms - aside.timestamp_ms
        if existing and _holds(existing, aside.id, 1, age + lifetime_ms // 2):
            return existing
        return {"snapshot-id": aside.id, "type": "tag", "max-ref-age-ms": max(age + lifetime_ms, 1)}

    # The tag first: once the branch has moved on, nothing else holds what was left aside.
    table, aside = _write(catalog, table, _tag_name(consumer), wanted_aside)
    table, line = _write(catalog, table, branch_name(consumer), wanted)
    return table, line if aside.is_held else aside


def held(table: LoadedTable, history: History, consumer: str) -> tuple[frozenset[int], int | None]:
    """The snapshots that the consumer's pin holds, and when it ends."""
    refs = table.metadata.get("refs", {})
    ref, tag = refs.get(branch_name(consumer)), refs.get(_tag_name(consumer))
    aside = {tag["snapshot-id"]} if tag else set()
    head = history.snapshots.get(ref["snapshot-id"]) if ref else None
    if ref is None or head is None:
        return frozenset(aside), None
    line = islice(history.ancestors(head), ref.get("min-snapshots-to-keep", 1))
    age: int | None = ref.get("max-ref-age-ms")
    return frozenset({s.id for s in line} | aside), None if age is None else head.timestamp_ms + age


def _branch(snapshot_id: int, kept: int, age_ms: int) -> Ref:
    return {
        "snapshot-id": snapshot_id,
        "type": "branch",
        "min-snapshots-to-keep": kept,
        "max-ref-age-ms": max(age_ms, 1),
    }


def _holds(ref: Ref, snapshot_id: int, kept: int, age_ms: int) -> bool:
    exact = (ref["snapshot-id"], ref.get("min-snapshots-to-keep", 1)) == (snapshot_id, kept)
    return exact and int(ref.get("max-ref-age-ms", age_ms)) >= age_ms


def _write(
    catalog: Catalog, table: LoadedTable, ref_name: str, wanted: Callable[[LoadedTable, Ref | None], Ref | None]
) -> tuple[LoadedTable, Pin]:
    """Bring a reference to what is wanted of a table and the reference as it is; None: there should be none."""
    held = Pin(True, f"pinned by branch {ref_name}")
    for _ in range(_ATTEMPTS):
        existing = table.metadata.get("refs", {}).get(ref_name)
        ref = wanted(table, existing)
        if ref == existing:
            return table, held
        try:
            return catalog.set_ref(table, ref_name, ref), held
        except ConcurrentChange:
            table = catalog.load(table.name)
        except (PlatformError, StorageRefused, NotImplementedError) as error:
            return table, Pin(False, f"not pinned: {error}")
    return table, Pin(False, f"not pinned: {table.name} was changed by others {_ATTEMPTS} times in a row")
