"""A way to bring a target up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.rewrite.facts import Fact
from dalsegno.rewrite.relations import Obstacle
from dalsegno.rewrite.tables import Name, Reading


class StrategyName(StrEnum):
    APPEND_JOINED = "append new joins"
    APPEND = "append"
    NEW_KEYS = "append new keys"
    DELTA_JOINED = "delta of new joins"
    DELTA = "delta"
    DELTA_KEYS = "delta of touched keys"
    PARTITIONS = "touched partitions"
    KEYS = "touched keys"
    FULL = "full"


class Changed(StrEnum):
    """What happened to a source since the last run."""

    APPENDED = "appended"
    #: Rows were updated or deleted, or the table was rolled back.
    ANY = "any"


@dataclass(frozen=True)
class Options:
    """What the author of a table declares."""

    #: Output columns; empty: chosen from the query.
    keys: tuple[str, ...] = ()
    #: Strategies that need no probe, because the author knows that it would find nothing.
    trusted: frozenset[StrategyName] = frozenset()


@dataclass(frozen=True)
class Strategy:
    """A way to bring the target up to date, or why it is not one."""

    name: StrategyName
    #: Why it is right, or why not.
    why: str
    #: What must hold of the data besides.
    facts: tuple[Fact, ...] = ()
    key: tuple[str, ...] = ()
    #: Source → the partition columns that it makes use of, if ``Change.partition_filter`` says something of them; and
    #: the output column that each becomes.
    partition_columns: Mapping[Name, Mapping[str, str]] = field(default_factory=dict)
    obstacle: Obstacle | None = None
    _write: Callable[[Reading], list[str]] | None = field(default=None, repr=False)
    _probe: Callable[[Reading], str | None] | None = field(default=None, repr=False)

    @property
    def is_possible(self) -> bool:
        return self._write is not None

    @property
    def is_idempotent(self) -> bool:
        """Whether executing its statements once more changes nothing."""
        return self.name in (StrategyName.PARTITIONS, StrategyName.KEYS, StrategyName.FULL)

    @property
    def is_always_correct(self) -> bool:
        """Whether it needs no probe."""
        return self._probe is None

    def probe(self, reading: Reading) -> str | None:
        """A query that returns a row if the strategy is not right for this run; None if it always is."""
        return None if self._probe is None else self._probe(reading)

    def statements(self, reading: Reading) -> list[str]:
        """The SQL of one run, to be executed in order; none if there is nothing to do."""
        if self._write is None:
            raise UserError(f"The strategy {self.name} is not possible: {self.why}")
        return [] if reading.is_empty and self.name is not StrategyName.FULL else self._write(reading)
