"""The commands about the Spark that dalsegno runs on this machine."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from dalsegno.cli.output import reporting, show
from dalsegno.cli.runs import Json, SettingsFile

spark = typer.Typer(help="See, start and stop the local Spark of Spark steps.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(spark, name="spark", no_args_is_help=True)


@spark.command("status")
def spark_status(json: Json = False, settings: SettingsFile = None) -> None:
    """Show which Spark steps use, and whether it runs."""
    with reporting(as_json=json):
        show(_status(settings), _as_text, as_json=json)


@spark.command("start")
def spark_start(
    address: Annotated[
        bool, typer.Option("--address", help="print nothing but its address, token included, for SPARK_REMOTE")
    ] = False,
    settings: SettingsFile = None,
) -> None:
    """Start the local Spark, unless it runs. Steps do that, too."""
    with reporting():
        from dalsegno.settings import load  # noqa: PLC0415
        from dalsegno.steps.spark.sessions import server_address  # noqa: PLC0415

        found = server_address(load(settings), lambda text: print(text, file=sys.stderr))
        print(found if address else _as_text(_status(settings)))


@spark.command("stop")
def spark_stop(settings: SettingsFile = None) -> None:
    """Stop the local Spark, with whatever it is doing."""
    with reporting():
        from dalsegno.settings import load  # noqa: PLC0415
        from dalsegno.spark.server import running_servers, stop  # noqa: PLC0415

        folders = [folder for folder, _ in running_servers(load(settings).root)]
        stopped = [stop(folder) for folder in folders]
        print("Stopped." if any(stopped) else "No local Spark was running.")


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
    lines = [f"Spark steps use {status['remote']}."] if status["remote"] else []
    for server in status["servers"]:
        kind = "" if server["is_current"] else ", with settings that are no longer those of steps"
        since = server["started_at"][:16].replace("T", " ")
        lines.append(f"A local Spark runs since {since} UTC on port {server['port']}{kind}.")
        lines.append(f"  processes {server['keeper']} (keeper) and {server['java']} (Java); log: {server['log']}")
    return "\n".join(lines) or "No local Spark is running. The first Spark step starts it."
