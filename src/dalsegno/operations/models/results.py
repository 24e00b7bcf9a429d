"""What becomes of models that are pushed and run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dalsegno.model.tables import TableName
from dalsegno.operations.pushed import Pushed


class ModelStatus(StrEnum):
    REFRESHED = "refreshed"
    #: Neither the SELECT nor a source has changed.
    UNCHANGED = "unchanged"
    FAILED = "failed"
    #: Something that it reads was not brought up to date.
    NOT_RUN = "not_run"


@dataclass(frozen=True)
class CheckedModel:
    """A model that is valid."""

    model: str
    file: str
    workflow_id: str
    target: TableName
    sources: tuple[TableName, ...]


@dataclass(frozen=True)
class PushedModels:
    #: In the order in which they run.
    models: tuple[Pushed, ...]
    #: Workflows of models whose files are not there any more; they are kept.
    without_file: tuple[str, ...]


@dataclass(frozen=True)
class ModelResult:
    """What became of one model."""

    model: str
    workflow_id: str
    target: TableName
    status: ModelStatus
    #: The run as WORKFLOW/NUMBER, if there was one.
    run: str | None = None
    strategy: str | None = None
    #: Of the target.
    added_rows: int = 0
    removed_rows: int = 0
    seconds: float = 0.0
    #: Why this strategy, or why it did not succeed.
    reason: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class ModelsRun:
    #: In the order in which they ran.
    models: tuple[ModelResult, ...]
    without_file: tuple[str, ...]
    seconds: float

    @property
    def is_success(self) -> bool:
        return all(each.status in (ModelStatus.REFRESHED, ModelStatus.UNCHANGED) for each in self.models)
