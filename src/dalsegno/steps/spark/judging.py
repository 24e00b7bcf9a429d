"""What became of a statement that was begun, by the evidence in its target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dalsegno.iceberg import evidence
from dalsegno.iceberg.evidence import Absent, Unclear, Written
from dalsegno.model.tables import TableName
from dalsegno.model.work_units import Statement
from dalsegno.settings import Settings
from dalsegno.spark.forms import Effect, form_of
from dalsegno.steps.spark import fences
from dalsegno.steps.spark.targets import Targets


@dataclass(frozen=True)
class NotExecuted:
    """It was not executed, or once more leaves the same."""


@dataclass(frozen=True)
class InDoubt:
    because: str


Judgement = Written | NotExecuted | InDoubt


@dataclass(frozen=True)
class Judge:
    """Asks the targets of one unit."""

    settings: Settings
    targets: Targets
    unit_id: str
    say: Callable[[str], None]

    def verdict(self, statement: Statement) -> evidence.Verdict:
        """What the target says now."""
        if statement.target is None or statement.before is None:
            return Unclear("its target is in no catalog that dalsegno can ask, or is not an Iceberg table")
        metadata = self.targets.load(TableName.of_quoted(statement.target))
        return evidence.verdict(metadata, statement.before, self.unit_id, statement.number)

    def judge(self, statement: Statement, settings_made: Sequence[str]) -> Judgement:
        """``settings_made`` are the settings of Spark that the step makes before it."""
        form = form_of(statement.text)
        if form.effect is Effect.UNKNOWN:
            names = ", ".join(".".join(parts) for parts in form.targets)
            return InDoubt(f"what it has written is unknown, because {form.because}{names and f': {names}'}")
        found = self.verdict(statement) if form.effect.may_write else Absent()
        if isinstance(found, Absent) and form.effect is Effect.STAMPED:
            found = self._verdict_behind_fence(statement, settings_made)
        if isinstance(found, Written):
            return found
        # What leaves no stamp may have been executed. Nothing after it was begun, so that once more leaves the same.
        is_harmless = not form.effect.may_write or (form.effect is Effect.UNSTAMPED and form.is_idempotent)
        if is_harmless or (isinstance(found, Absent) and form.effect is Effect.STAMPED):
            return NotExecuted()
        return InDoubt(found.because if isinstance(found, Unclear) else "it leaves no trace in its target")

    def _verdict_behind_fence(self, statement: Statement, settings_made: Sequence[str]) -> evidence.Verdict:
        """The verdict of a target to which nothing of the statement can come any more."""
        table = TableName.of_quoted(statement.target or "")
        metadata = self.targets.load(table)
        if metadata is not None and not fences.can_fence(self.settings, statement, metadata, settings_made):
            return Unclear(f"{table} has format version 1, so that its catalog may still accept the statement's commit")
        fences.fence(self.settings, statement, metadata, self.unit_id, self.say)
        now = self.targets.load(table)
        if metadata is not None and now is not None and not fences.is_fenced(metadata, now, self.unit_id):
            return Unclear(f"what Spark wrote to {table} is not in the table that the settings name so")
        return self.verdict(statement)
