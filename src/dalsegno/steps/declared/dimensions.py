"""Dimensions: the sources that a query joins to its leading table. One that is pinned is read as of a snapshot.

The snapshot is the consumer's checkpoint on that table. Only a run that captures the table moves it, and such a run is
a full refresh. So what the target holds, what the checkpoint says and what the pin keeps from expiring are always one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from dalsegno.capture.lake import Lake
from dalsegno.errors import HistoryLost, UserError
from dalsegno.hints import Verb, action, did_you_mean
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.iceberg.history import MAIN, branch_heads
from dalsegno.model.tables import TableName
from dalsegno.rewrite.leading import leading_table
from dalsegno.steps.declared.params import Dimension
from dalsegno.steps.declared.same_rows import has_same_rows

Dimensions = Dimension | Mapping[str, Dimension]


@dataclass(frozen=True)
class Pinned:
    """A dimension, and the snapshot that it is read at."""

    table: LoadedTable
    #: None: it had no rows.
    snapshot_id: int | None

    @property
    def is_changed(self) -> bool:
        """Whether the table has other rows by now."""
        return not has_same_rows(self.table, self.snapshot_id, branch_heads(self.table.metadata).get(MAIN))


def pinned_names(
    named: Callable[[str], TableName], dimensions: Dimensions, query: str, sources: Collection[TableName]
) -> set[TableName]:
    """Which sources are pinned. The query reads tables, not views."""
    if isinstance(dimensions, Mapping):
        given = {named(text): word for text, word in dimensions.items()}
        for name in given.keys() - set(sources):
            raise UserError(
                f"dimensions: the query does not read {name}.", hint=did_you_mean(str(name), [*map(str, sources)])
            )
        pinned = {name for name, word in given.items() if word is Dimension.PINNED}
    elif dimensions is Dimension.FOLLOW:
        return set()
    else:
        leading = leading_table(query)
        if leading is None:
            raise UserError(
                "dimensions: pinned does not say which table is followed: the query has no first table of its own.",
                hint=f"Name what is pinned: dimensions: {{{next(iter(sources))}: pinned}}",
            )
        pinned = set(sources) - {named(".".join(leading))}
    if pinned and pinned >= set(sources):
        raise UserError("All sources are pinned, so nothing could ever change.", hint="Let one of them follow.")
    return pinned


def pinned_at(lake: Lake, consumer: str, name: TableName, table: LoadedTable, workflow_id: str) -> Pinned:
    """The dimension as the last full refresh read it; its pin is renewed."""
    rebuild = action("To read it as it is now", Verb.RUN, workflow=workflow_id, full_refresh=True)
    position = lake.position(consumer, str(name))
    if position is None:
        raise UserError(f"{name} is pinned, but no full refresh has read it yet.", actions=[rebuild])
    known = {raw["snapshot-id"] for raw in table.metadata.get("snapshots", ())}
    is_same = position.table_uuid == table.metadata["table-uuid"]
    if not is_same or (position.snapshot_id is not None and position.snapshot_id not in known):
        raise HistoryLost(
            f"{name} is pinned to snapshot {position.snapshot_id}, which it no longer has. Nothing was written.",
            actions=[rebuild],
        )
    return Pinned(table, position.snapshot_id)
