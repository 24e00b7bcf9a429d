"""File triggers, for people."""

from __future__ import annotations

from collections.abc import Iterator

from tests.triggers.file_triggers.operations import FileTriggerView


def lines(view: FileTriggerView, workflow_id: str | None) -> Iterator[str]:
    yield f"{workflow_id} watches the file {view.path}."
