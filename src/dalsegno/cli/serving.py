"""The command that does not end: triggers and workers."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import reporting
from dalsegno.cli.runs import SettingsFile

if TYPE_CHECKING:
    from dalsegno.operations.service import Role, Service

#: How long a server that was told to end may take.
_PATIENCE_SECONDS = 28.0


def register(app: typer.Typer) -> None:
    app.command()(server)


def server(
    roles: Annotated[
        str, typer.Option(metavar="ROLE,…", help="what this node does: triggers (start runs), workers (run steps)")
    ] = "triggers,workers",
    settings: SettingsFile = None,
) -> None:
    """Start runs when their triggers say so, and run their steps, until it is told to end.

    Any number of nodes may share a store in PostgreSQL. Ctrl-C or SIGTERM: nothing more is begun, steps that go on are
    left to other nodes, or to the next one that is started; that takes 30 seconds at most.
    """
    with reporting():
        from dalsegno import settings as settings_module  # noqa: PLC0415 - not for --help
        from dalsegno.operations.service import Service  # noqa: PLC0415
        from dalsegno.store import Store  # noqa: PLC0415

        chosen = _roles(roles)
        loaded = settings_module.load(settings)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        with Store.open(loaded.store) as store:
            service = Service(loaded, store, chosen)
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, lambda *_: _stop(service))
            print(f"dalsegno works on {store.database.place}: {', '.join(chosen)}.", file=sys.stderr, flush=True)
            service.run()


def _stop(service: Service) -> None:
    service.stop()
    # Whatever still holds a worker up then: the others go on without us as if we had died.
    last_resort = threading.Timer(_PATIENCE_SECONDS, os._exit, [0])
    last_resort.daemon = True
    last_resort.start()


def _roles(text: str) -> list[Role]:
    from dalsegno.errors import UserError  # noqa: PLC0415
    from dalsegno.operations.service import Role  # noqa: PLC0415 - not for --help

    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in list(Role)]
    if unknown or not names:
        raise UserError(
            f"--roles is {text!r}, expected some of {', '.join(Role)}.", hint="For instance: --roles workers"
        )
    return [Role(name) for name in names]
