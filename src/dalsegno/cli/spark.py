"""The commands about the Spark that dalsegno runs on this machine."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from dalsegno.cli.output import reporting, show
from dalsegno.cli.runs import Json, SettingsFile

spark = typer.Typer(help="Show, start or stop the local Spark server.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(spark, name="spark", no_args_is_help=True)


@spark.command("status")
def spark_status(json: Json = False, settings: SettingsFile = None) -> None:
    """Show which Spark server steps use, and whether it runs."""
    with reporting(as_json=json):
        show(_status(settings), _as_text, as_json=json)


@spark.command("start")
def spark_start(
    address: Annotated[
        bool, typer.Option("--address", help="Print only its address with the token, for SPARK_REMOTE.")
    ] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Start the local Spark server, unless it runs. Spark steps start it, too."""
    with reporting(as_json=json):
        from dalsegno.settings import load  # noqa: PLC0415
        from dalsegno.steps.spark.sessions import server_address  # noqa: PLC0415

        found = server_address(load(settings), lambda text: print(text, file=sys.stderr))
        status = {"address": found} if address else _status(settings)
        show(status, lambda _: found if address else _as_text(status), as_json=json)


@spark.command("stop")
def spark_stop(json: Json = False, settings: SettingsFile = None) -> None:
    """Stop the local Spark server, and the queries that it runs."""
    with reporting(as_json=json):
        from dalsegno.settings import load  # noqa: PLC0415
        from dalsegno.spark.server import running_servers, stop  # noqa: PLC0415

        folders = [folder for folder, _ in running_servers(load(settings).root)]
        stopped = [stop(folder) for folder in folders]
        said = "Stopped." if any(stopped) else "No local Spark was running."
        show({"stopped": sum(stopped)}, lambda _: said, as_json=json)


def _status(settings: Any) -> dict[str, Any]:
    from dalsegno.settings import load  # noqa: PLC0415
    from dalsegno.spark.server import running_servers  # noqa: PLC0415
    from dalsegno.steps.spark.sessions import local_server  # noqa: PLC0415

    loaded = load(settings)
    wanted = None if loaded.spark_remote else local_server(loaded).folder
    servers = [
        {
            "is_current": folder == wanted,
            "port": server.port,
            "keeper": server.keeper,
            "java": server.java,
            "started_at": server.started_at,
            "log": str(folder / "log"),
        }
        for folder, server in running_servers(loaded.root)
    ]
    # Without what may follow the address: a token.
    remote = loaded.spark_remote.partition(";")[0] if loaded.spark_remote else None
    return {"remote": remote, "servers": servers}


def _as_text(status: dict[str, Any]) -> str:
    from dalsegno.cli.times import moment  # noqa: PLC0415 - not for --help

    lines = [f"Spark steps use {status['remote']}."] if status["remote"] else []
    for server in status["servers"]:
        kind = "" if server["is_current"] else ", with settings that are no longer those of steps"
        since = moment(datetime.fromisoformat(server["started_at"]))
        lines.append(f"A local Spark runs since {since} on port {server['port']}{kind}.")
        lines.append(f"  processes {server['keeper']} (keeper) and {server['java']} (Java); log: {server['log']}")
    return "\n".join(lines) or "No local Spark is running. The first Spark step starts it."
