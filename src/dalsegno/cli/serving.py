"""The command that does not end: triggers, workers, and what answers over HTTP."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import opened, reporting, show
from dalsegno.cli.runs import Json, SettingsFile

if TYPE_CHECKING:
    from dalsegno.cli.log_lines import LogFormat
    from dalsegno.operations.service import Role, Service

log = logging.getLogger(__name__)

#: How long a server that was told to end may take.
_PATIENCE_SECONDS = 28.0

server = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.add_typer(server, name="server")


@server.callback()
def serve(
    context: typer.Context,
    roles: Annotated[
        str,
        typer.Option(
            metavar="ROLE,…",
            help="What this node does: api (serve HTTP), triggers (start runs), workers (run steps).",
        ),
    ] = "api,triggers,workers",
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve HTTP here. By default, the setting listen.")
    ] = None,
    probes: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve /health and /ready on a listener of their own, too. By default, the setting probes.",
        ),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="text or json. By default, text on a terminal, else json.")
    ] = None,
    settings: SettingsFile = None,
) -> None:
    """Run a server: triggers, workers and the HTTP API.

    It starts runs by their triggers and runs their steps. Any number of nodes can share a store in PostgreSQL.

    On Ctrl-C or SIGTERM the node starts nothing more, leaves running steps to other nodes or the next start, and ends
    within 30 seconds.
    """
    if context.invoked_subcommand is not None:
        return
    with reporting():
        from dalsegno import settings as settings_module  # noqa: PLC0415 - not for --help
        from dalsegno.cli import log_lines  # noqa: PLC0415
        from dalsegno.operations.service import Service  # noqa: PLC0415
        from dalsegno.server.descriptors import raise_descriptor_limit  # noqa: PLC0415

        chosen = _roles(roles)
        loaded = settings_module.load(settings, listen=listen, probes=probes)
        raise_descriptor_limit()
        with log_lines.logged(loaded, _log_format(log_format)), Service.open(loaded, chosen) as service:
            for each in (signal.SIGTERM, signal.SIGINT):
                signal.signal(each, lambda *_: _stop(service))
            with _answering(service):
                _say(f"dalsegno works on {service.place}: {', '.join(chosen)}.")
                service.run()


@server.command("token")
def token(json: Json = False, settings: SettingsFile = None) -> None:
    """Create and print a new HTTP token. Older tokens become invalid.

    The store keeps only a digest of it.
    """
    with opened(settings, as_json=json) as operations:
        show({"token": operations.admin.new_token()}, lambda found: str(found["token"]), as_json=json)


@contextmanager
def _answering(service: Service) -> Iterator[None]:
    from dalsegno.errors import UserError  # noqa: PLC0415 - not for --help
    from dalsegno.operations.service import Role  # noqa: PLC0415

    is_api, probes = Role.API in service.roles, service.settings.probes
    if not is_api and probes is None:
        yield
        return
    try:
        from dalsegno.server.listening import answering_probes, listening  # noqa: PLC0415 - others go on without
    except ImportError as error:
        raise UserError(
            f"{'The role api' if is_api else '--probes'} needs {error.name}, which is not installed.",
            hint="Install it: pip install 'dalsegno[server]'. To go on without: --roles triggers,workers",
        ) from None
    with ExitStack() as stack:
        if probes is not None:
            place = stack.enter_context(answering_probes(service, probes))
            _say(f"dalsegno answers probes on http://{place}")
        if is_api:
            place = stack.enter_context(listening(service, service.settings.listen))
            _hand_over_first_token(service)
            _say(f"dalsegno listens on http://{place}")
        yield


def _hand_over_first_token(service: Service) -> None:
    """Show it on a terminal. What is written elsewhere is kept, and read by others: there it is in a file."""
    from dalsegno.operations.tokens import write_token  # noqa: PLC0415 - not for --help

    def hand_over(token: str) -> None:
        if sys.stderr.isatty():
            _say(f"Its token, which is shown this once: {token}")
        else:
            file = write_token(service.settings.root / ".dalsegno" / "first-token", token)
            _say(f"Its token is in {file}, for you alone: read it, then delete the file.")

    service.make_first_token(hand_over)


def _say(text: str) -> None:
    from dalsegno.cli.log_lines import is_json  # noqa: PLC0415 - not for --help

    if is_json():
        log.info("%s", text)
    else:
        print(text, file=sys.stderr, flush=True)


def _log_format(text: str | None) -> LogFormat | None:
    from dalsegno.cli.log_lines import LogFormat  # noqa: PLC0415 - not for --help
    from dalsegno.errors import UserError  # noqa: PLC0415

    if text is not None and text not in list(LogFormat):
        raise UserError(f"--log-format is {text!r}, expected one of {', '.join(LogFormat)}.")
    return LogFormat(text) if text else None


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
