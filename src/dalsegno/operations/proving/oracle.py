"""Whether a target holds what its SELECT gives: the SELECT over whole clones, executed and compared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from dalsegno.audit.comparison import Ask, Comparison, Pair, compare
from dalsegno.steps.declared.first_runs import as_written, comparable

#: More columns than a table has.
_MOST_COLUMNS = 10_000
#: Differing rows that are shown.
_SHOWN = 5


@dataclass(frozen=True)
class Checked:
    comparison: Comparison
    #: What the SELECT took, its rows written.
    seconds: float


def check(ask: Ask, query: str, target: str, expected: str, partitions: str) -> Checked:
    """Execute the query into the table ``expected``, and compare; all names are SQL."""
    described = ask(f"DESCRIBE QUERY SELECT * FROM {target}", _MOST_COLUMNS).to_pylist()  # noqa: S608 - names are quoted
    kinds = {row["col_name"]: row["data_type"] for row in described}
    select = f"SELECT {as_written(kinds)} FROM (\n{query}\n)"  # noqa: S608 - the user's own query
    begun = time.monotonic()
    ask(f"CREATE OR REPLACE TABLE {expected} USING iceberg {partitions} AS {select}", 1)
    seconds = time.monotonic() - begun
    return Checked(compare(ask, Pair(_comparable(expected, kinds), _comparable(target, kinds), limit=_SHOWN)), seconds)


def _comparable(relation: str, kinds: Mapping[str, str]) -> str:
    return f"(SELECT {', '.join(comparable(name, kind) for name, kind in kinds.items())} FROM {relation})"  # noqa: S608
