"""Runs that start because tables changed: registered here, looked at by ``polling``, started by ``firing``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from sqlalchemy import Connection

from dalsegno.store import triggers
from dalsegno.store.row_queries import Row
from dalsegno.triggers.engine import TriggerContext, TriggerStarter, Watcher
from dalsegno.triggers.table_triggers.engine.polling import TableWatcher
from dalsegno.triggers.table_triggers.model import IncrementalTrigger
from dalsegno.triggers.table_triggers.spec import watch_name


class TableStarter(TriggerStarter[IncrementalTrigger]):
    #: A slow catalog holds up nothing else.
    has_own_thread: ClassVar[bool] = True

    def register(
        self,
        connection: Connection,
        workflow_id: str,
        wanted: Sequence[IncrementalTrigger],
        registered: Mapping[str, Row],
        now: datetime,
    ) -> None:
        # Tables are looked at all the time. Keys of runs follow from when the trigger was registered.
        new = triggers.NewTrigger(state={"armed": f"{now:%Y%m%dT%H%M%S.%f}"})
        rows = {watch_name(trigger): new for trigger in wanted}
        triggers.replace(connection, workflow_id, IncrementalTrigger.kind, rows, registered)

    def watcher(self, context: TriggerContext) -> Watcher:
        return TableWatcher(context)


STARTER = TableStarter()
