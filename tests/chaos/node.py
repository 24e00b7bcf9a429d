"""A node of the service, to be killed; its clock is wrong by as much as it is told."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dalsegno.clock import utc_now
from dalsegno.operations.service import Role, Service
from dalsegno.settings import load
from dalsegno.store import Store


def live(root: str, store_url: str, wrong_by: Any) -> None:
    settings = load(working_folder=Path(root), environment={}, store=store_url)

    def clock() -> datetime:
        return utc_now() + timedelta(seconds=wrong_by.value)

    with Store.open(settings.store) as store:
        service = Service(settings, store, (Role.TRIGGERS, Role.WORKERS), clock=clock)
        signal.signal(signal.SIGTERM, lambda *_: service.stop())
        service.run()
