"""Runs that start because a file was written. A run's key follows from the file and when it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from sqlalchemy import Connection

from dalsegno.store import triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers.engine import TriggerContext, TriggerStarter, Watcher
from tests.triggers.file_triggers.model import FileTrigger


class FileStarter(TriggerStarter[FileTrigger]):
    has_own_thread: ClassVar[bool] = True

    def register(
        self,
        connection: Connection,
        workflow_id: str,
        wanted: Sequence[FileTrigger],
        registered: Mapping[str, Row],
        now: datetime,
    ) -> None:
        rows = {trigger.path: triggers.NewTrigger(state={"written_ns": 0}) for trigger in wanted}
        triggers.replace(connection, workflow_id, FileTrigger.kind, rows, registered)

    def watcher(self, context: TriggerContext) -> Watcher:
        return FileWatcher(context)


class FileWatcher:
    def __init__(self, context: TriggerContext) -> None:
        self.context = context

    def look(self) -> float:
        with self.context.store.database.reading() as connection:
            rows = triggers.of_kind(connection, FileTrigger.kind)
        for row in rows:
            file = Path(row["name"])
            written_ns = file.stat().st_mtime_ns if file.exists() else 0
            blueprint = self.context.active(row["workflow_id"])
            if blueprint is None or written_ns <= row["state"]["written_ns"]:
                continue
            initiator = {"type": "FILE", "by": "dalsegno", "trigger": row["name"]}
            self.context.start(blueprint, f"{row['workflow_id']}/{row['name']}/{written_ns}", initiator)
            with self.context.store.database.writing() as connection:
                triggers.change(connection, row, state={"written_ns": written_ns})
        return 0.1


STARTER = FileStarter()
