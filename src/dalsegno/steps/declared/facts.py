"""The facts that a declared table depends on: what the author states, and up to which snapshots it was checked.

A fact that was never checked for the rows behind a target is looked for in all rows of its source once, and no strategy
uses it in that run. From then on only new rows are checked. The target remembers it, in a property.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dalsegno.errors import DataError
from dalsegno.hints import Verb, action
from dalsegno.iceberg.catalogs import LoadedTable
from dalsegno.model.captures import Capture
from dalsegno.rewrite.analysis import Analysis
from dalsegno.rewrite.checks import Check, checks_for
from dalsegno.rewrite.facts import Fact, FactKind
from dalsegno.rewrite.stated import stated_facts
from dalsegno.rewrite.tables import Name, Reading, Table
from dalsegno.steps.declared.same_rows import has_same_rows
from dalsegno.steps.declared.sources import parts_of

#: The property of a target: which facts were checked, and from which snapshots of their sources to which.
FACTS_PROPERTY = "dalsegno.facts"

#: Some rows of a query, as values by column.
Rows = Callable[[str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class StatedFacts:
    """What the author of a table states."""

    every: tuple[Fact, ...] = ()
    #: Those that were checked for all rows up to where this run begins.
    known: frozenset[Fact] = frozenset()
    #: What the target remembers once this run has written.
    recorded: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        sources: Mapping[Name, LoadedTable],
        tables: Sequence[Table],
        target: LoadedTable | None,
        capture: Capture | None,
    ) -> StatedFacts:
        every = stated_facts(texts, tables)
        if capture is None or not every:
            return cls(every)
        properties = target.metadata.get("properties", {}) if target else {}
        before = _recorded(properties.get(FACTS_PROPERTY))
        is_full = any(captured.is_full for captured in capture.tables)
        known, recorded = set(), {}
        for fact in every:
            if fact.is_trusted:
                continue
            begin, end = (_ends(fact, capture, at) for at in (0, 1))
            if not is_full and _is_known(before.get(str(fact)), begin, end, fact, sources):
                known.add(fact)
            recorded[str(fact)] = {"from": begin if fact in known else None, "at": end}
        return cls(every, frozenset(known), recorded)

    @property
    def usable(self) -> tuple[Fact, ...]:
        """What strategies may depend on: it holds before and after this run."""
        return tuple(fact for fact in self.every if fact.is_trusted or fact in self.known)

    @property
    def are_known(self) -> bool:
        """Whether each fact was checked before, or is trusted."""
        return all(fact.is_trusted or fact in self.known for fact in self.every)

    @property
    def has_no_ties(self) -> bool:
        """Whether the author says that no two rows tie."""
        return any(fact.kind is FactKind.NO_TIES for fact in self.every)

    def properties(self) -> dict[str, str]:
        return {FACTS_PROPERTY: json.dumps(self.recorded, sort_keys=True)} if self.recorded else {}

    def checks(self, analysis: Analysis, target: Table, reading: Reading) -> list[Check]:
        return checks_for(analysis, target, self.every, reading, known=self.known)


def refuse_violated(checks: Sequence[Check], rows: Rows, workflow_id: str) -> None:
    """Raise if a fact does not hold for the rows that a run would read."""
    for check in checks:
        if found := rows(check.sql):
            keys = "; ".join(", ".join(f"{name} = {value!r}" for name, value in row.items()) for row in found)
            raise DataError(
                f"The fact {str(check.fact)!r} does not hold for: {keys}. Nothing was written.",
                hint="Correct these rows of the source. If the fact is wrong, remove it from 'facts', then rebuild.",
                actions=[action("To rebuild", Verb.RUN, workflow=workflow_id, full_refresh=True)],
            )


def _recorded(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _ends(fact: Fact, capture: Capture, at: int) -> dict[str, int | None]:
    """The snapshots where a capture begins or ends, of the sources that a fact is about."""
    ends = {parts_of(each.table): (each.after.snapshot_id, each.upto.snapshot_id)[at] for each in capture.tables}
    return {".".join(name): end for name, end in ends.items() if fact.table in (None, name)}


def _is_known(
    entry: Any,
    begin: Mapping[str, int | None],
    end: Mapping[str, int | None],
    fact: Fact,
    sources: Mapping[Name, LoadedTable],
) -> bool:
    """Whether a fact was checked up to where a run begins; an earlier attempt of it may have recorded its end."""
    if not isinstance(entry, dict):
        return False
    if entry.get("at") == end and entry.get("from") == begin:
        return True
    at = entry.get("at")
    loaded = {".".join(name): table for name, table in sources.items() if fact.table in (None, name)}
    return (
        isinstance(at, dict)
        and at.keys() == begin.keys()
        and all(has_same_rows(loaded[name], at[name], begin[name]) for name in begin if name in loaded)
    )
