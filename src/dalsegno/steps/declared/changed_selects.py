"""Whether a SELECT is another one than that which a target's rows are of, from metadata alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dalsegno.capture.lake import Lake
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.rewrite.analysis import expanded
from dalsegno.rewrite.tables import Name
from dalsegno.steps.declared.companions import QUERY_PROPERTY
from dalsegno.steps.declared.params import DeclaredTable
from dalsegno.steps.declared.refreshing import other_select
from dalsegno.steps.declared.sources import current_namespace, described, find


def refuse_changed_select(
    lake: Lake, table: DeclaredTable, sources: Mapping[Name, LoadedTable], workflow_id: str
) -> None:
    """Raise, also where no source has changed: nobody would notice until one does."""
    name = lake.name(table.target)
    target = find(lake, name)
    known = target and target.metadata.get("properties", {}).get(QUERY_PROPERTY)
    if not known:
        return
    query = expanded(table.query, [described(each) for each in sources.values()], current=current_namespace(lake))
    if str(known).partition("-")[0] != replace(table, query=query).select_digest:
        raise other_select(name, workflow_id)
