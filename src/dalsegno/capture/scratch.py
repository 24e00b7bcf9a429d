"""Whole tables at one of their snapshots, to work with for a while: zero-copy, in namespaces of their own.

A clone is made like a change table, so it may be read and even written to: what is written goes to the clone's own
folder, and nothing of the original is ever touched. It keeps the original's last name, so that SQL which says
``plays.id`` means it as well. Nothing records clones: each lies in a namespace whose name says when it was made, which
is how ``clean`` knows those that somebody left behind.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from dalsegno.capture import views
from dalsegno.capture.context import CaptureContext
from dalsegno.capture.details import contents_of, describe, refuse_unreadable
from dalsegno.errors import DalsegnoError, HistoryLost, PlatformError, UnknownName
from dalsegno.iceberg import change_table, history_clone
from dalsegno.iceberg.catalogs import Catalog, LoadedTable
from dalsegno.iceberg.pins import Pin
from dalsegno.model.capture_requests import DetailOptions
from dalsegno.model.captures import ADDED_FILES, Capture, CapturedTable, CaptureSpec, CaptureState, Mode
from dalsegno.model.snapshots import Position, Snapshot
from dalsegno.model.tables import TableName
from dalsegno.plan.increments import Increment, increment_between
from dalsegno.storage_problems import refused

_NAMESPACE = re.compile(r"dalsegno_scratch_(\d{14})_[a-z0-9]+_\d+")
_NOT_PINNED = Pin(False, "not pinned: a clone is for a while only")


@dataclass
class Scratch:
    """Clones that belong together."""

    context: CaptureContext
    _prefix: str = field(init=False)
    _namespaces: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._prefix = f"dalsegno_scratch_{self.context.clock():%Y%m%d%H%M%S}_{secrets.token_hex(4)}"

    @property
    def prefix(self) -> str:
        """What the names of all its namespaces begin with."""
        return self._prefix

    def name(self, original: TableName) -> TableName:
        """A free name, in a namespace that exists from now on."""
        return TableName(original.catalog, (self.namespace(original.catalog),), original.name)

    def namespace(self, *catalogs: str) -> str:
        """A new namespace, of the same name in each of the catalogs."""
        made = f"{self._prefix}_{len(self._namespaces)}"
        for catalog in catalogs:
            self._namespaces.append((catalog, made))
            self.context.tables.catalog(catalog).ensure_namespace((made,))
        return made

    def clone_with_history(self, table: LoadedTable, at: Snapshot | None) -> TableName:
        """The table at a snapshot of its main branch, or without rows; ``main`` can move on from there.

        The clone refers to the manifests and data files of the original, and owns what is written to it.
        """
        return self._registered(table, at, keeps_history=True)

    def empty_clone(self, table: LoadedTable) -> TableName:
        """A table of the same columns, partitions and format version, to which nothing was ever written."""
        return self._registered(table, None, keeps_history=False)

    def _registered(self, table: LoadedTable, at: Snapshot | None, *, keeps_history: bool) -> TableName:
        name = self.name(table.name)
        catalog = self.context.tables.catalog_of(table.name)
        folder = catalog.changes_folder(self.context.settings.change_namespace, table)
        location = f"{folder}/{name.namespace[0]}/{name.name}"
        metadata = history_clone.metadata_of(table, at, location, self.context.clock())
        if not keeps_history:
            metadata["snapshots"] = []
        file = f"{location}/metadata/00000-{metadata['table-uuid']}.metadata.json"
        files = catalog.files_of(name, location)
        try:
            files.make_folder(f"{location}/metadata")
            files.write(file, json.dumps(metadata, separators=(",", ":")).encode())
        except OSError as error:
            if (refusal := refused(error, name.catalog, f"write the metadata of {name}")) is not None:
                raise refusal from error
            raise PlatformError(f"The metadata of {name} could not be written to {location}: {error}.") from error
        catalog.register(name, file)
        return name

    def clone(
        self,
        table: LoadedTable,
        upto: Position,
        *,
        after: Position | None = None,
        spec: CaptureSpec = ADDED_FILES,
        options: DetailOptions | None = None,
    ) -> Capture:
        """The table as it was at ``upto``, or what came to it since ``after``, as a capture that nobody recorded."""
        name = self.name(table.name)
        context, now = self.context, self.context.clock()
        catalog = context.tables.catalog_of(table.name)
        folder = catalog.changes_folder(context.settings.change_namespace, table)
        history = table.history(upto.branch)
        last = history.snapshots.get(upto.snapshot_id) if upto.snapshot_id is not None else None
        if history.table_uuid != upto.table_uuid or (last is None and upto.snapshot_id is not None):
            raise HistoryLost(f"{table.name} no longer has {upto}: expired or replaced since.")
        # Seen from the beginning, all is new, and no key was deleted.
        asked = replace(spec, mode=Mode.ICDC, by_row_id=False, has_deleted_keys=False)
        beginning = history.position(None)
        if after is None:
            increment = Increment(table.name, beginning, upto, (), is_first=True, is_full=True, spec=asked)
        else:
            increment = increment_between(table.name, "scratch", history, after, last, is_first=True, spec=asked)
        refuse_unreadable(table, history, increment, "scratch")
        captured = CapturedTable(
            table=table.name,
            after=increment.after,
            upto=upto,
            is_first=True,
            is_full=after is None,
            change_table=name,
            location=f"{folder}/{name.namespace[0]}/{name.name}",
            spec=increment.spec,
        )
        # The namespace is this clone's alone, so no two of them have one uuid.
        capture = Capture(name.namespace[0], "scratch", CaptureState.READY, now, context.actor, now, (captured,))
        threads = context.settings.io_threads
        contents = contents_of(table, history, increment, threads)
        published = {
            role: change_table.publish(catalog, table, capture, captured, role, contents[role], threads)
            for role in captured.tables
        }
        details = describe(
            table, history, increment, published, _NOT_PINNED, options or DetailOptions(partitions=False)
        )
        details |= views.publish_changes(catalog, capture, captured, table, details)
        return replace(capture, tables=(replace(captured, details=details),))

    def remove(self) -> tuple[str, ...]:
        """Remove all of them; what could not be removed is left for ``clean``."""
        problems = [
            problem
            for catalog, namespace in self._namespaces
            for problem in _remove(self.context.tables.catalog(catalog), namespace)
        ]
        self._namespaces.clear()
        return tuple(problems)


def is_scratch(namespace: str) -> bool:
    """Whether a namespace is one of clones."""
    return _NAMESPACE.fullmatch(namespace) is not None


def remove_scratch(context: CaptureContext, prefix: str) -> tuple[str, ...]:
    """Remove the clones of a ``Scratch`` whose process has ended, in all catalogs: what could not be removed."""
    if not is_scratch(f"{prefix}_0"):
        return ()
    return tuple(
        problem
        for name in context.settings.catalogs
        for namespace in context.tables.catalog(name).namespaces()
        if namespace[0].startswith(f"{prefix}_") and is_scratch(".".join(namespace))
        for problem in _remove(context.tables.catalog(name), namespace[0])
    )


def remove_left_over(context: CaptureContext) -> tuple[list[str], list[str]]:
    """Remove clones older than a capture may become: the namespaces that are gone, and what could not be removed."""
    removed, problems = [], []
    for name in context.settings.catalogs:
        with suppress(DalsegnoError):  # A catalog that is down must not keep the others from being cleaned.
            catalog = context.tables.catalog(name)
            for namespace in _old(context, catalog):
                left = list(_remove(catalog, namespace))
                problems += left
                if not left:
                    removed.append(f"{name}.{namespace}")
    return removed, problems


def _old(context: CaptureContext, catalog: Catalog) -> Iterator[str]:
    for namespace in catalog.namespaces():
        if found := _NAMESPACE.fullmatch(".".join(namespace)):
            made = datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            if made + context.settings.capture_lifetime <= context.clock():
                yield namespace[0]


def _remove(catalog: Catalog, namespace: str) -> Iterator[str]:
    """Take everything in a namespace out of the catalog, and delete the files below the folder that bears its name."""
    try:
        folders = set()
        for view in catalog.views((namespace,)):
            catalog.forget_view(view)
        for table in catalog.tables((namespace,)):
            with suppress(UnknownName):
                location = str(catalog.load(table).metadata["location"])
                catalog.forget(table)
                above, found, _ = f"{location}/".rpartition(f"/{namespace}/")
                if found:
                    folders.add(f"{above}/{namespace}")
        for folder in folders:
            files = catalog.files_at(folder)
            files.delete(*files.list(folder))
            files.remove_empty_folder(folder)
        catalog.drop_namespace((namespace,))
    except (DalsegnoError, OSError) as error:
        yield f"{catalog.settings.name}.{namespace}: {error}"
