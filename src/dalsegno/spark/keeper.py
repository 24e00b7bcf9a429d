"""Runs the local Spark Connect server and ends it: ``python -m dalsegno.spark.keeper FOLDER``, order on standard input.

It outlives the process that started it. The server is Spark's own, as a plug-in of a session that PySpark starts: so
Java ends by itself when the keeper is killed, because its standard input ends. The keeper ends when Java does, when it
is told to (SIGTERM), and when the server idled for long enough; ``server`` says what the files in the folder mean.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dalsegno.clock import utc_now
from dalsegno.spark.properties import as_properties
from dalsegno.spark.server import KEEPER_LOCK, LEASE, LOCK, LOG, STATE, TAKEN
from dalsegno.spark.session import LOOPBACK

#: Whoever looks whether the lock is held has it for a moment.
_CLAIM_SECONDS = 2.0
_EXIT_SECONDS = 15.0
_TICK_SECONDS = 1.0

#: Only this machine is listened to, and the token is asked for.
_CONNECT = {
    "spark.connect.grpc.binding.address": LOOPBACK,
    # Any that is free.
    "spark.connect.grpc.binding.port": "0",
    # A script may think for long between two queries. Sessions of steps are released when they end.
    "spark.connect.session.manager.defaultSessionTimeout": "24h",
}
_CONNECT_PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_CONNECT_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"


def main() -> None:
    folder = Path(sys.argv[1])
    order = json.load(sys.stdin)
    claim = claimed(folder / KEEPER_LOCK)
    if claim is None:
        sys.exit(TAKEN)
    speak_into(folder / LOG)
    # Whoever started us waits for this process, and never for the one that goes on, which keeps the lock.
    if os.fork():
        os._exit(0)
    # What PySpark registered for the end of the process would wait for a Java that is gone.
    with suppress(SystemExit):
        keep(folder, order)
    os._exit(0)


def claimed(path: Path) -> int | None:
    """The lock, for the rest of this process's life; None if another keeper has it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + _CLAIM_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return None
            time.sleep(0.02)
        else:
            return file


def speak_into(log: Path) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)


def keep(folder: Path, order: Mapping[str, Any]) -> None:
    signal.signal(signal.SIGTERM, _end)
    token = secrets.token_urlsafe(32)
    session = started(folder, order["conf"], token)
    java: subprocess.Popen[bytes] = session.sparkContext._gateway.proc
    try:
        publish(
            folder, {"port": _service(session).localPort(), "token": token, "keeper": os.getpid(), "java": java.pid}
        )
        watch(folder, session, java, order["idle_seconds"])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / STATE).unlink(missing_ok=True)
        end_java(java)


def _end(*_: object) -> None:
    # An exception, because a flag is not looked at while a call to Java hangs.
    raise SystemExit


def started(folder: Path, conf: Mapping[str, str], token: str) -> Any:
    """The session in which the server runs."""
    plugins = [name for name in (conf.get("spark.plugins"), _CONNECT_PLUGIN) if name]
    properties = folder / "spark.properties"
    write_privately(properties, as_properties({**conf, **_CONNECT, "spark.plugins": ",".join(plugins)}))
    # Configuration that is given to a session's builder becomes arguments of a process, which everybody can read.
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(str(properties))} pyspark-shell"
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token

    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, and slow

    try:
        return SparkSession.builder.getOrCreate()
    finally:
        properties.unlink()


def publish(folder: Path, state: Mapping[str, Any]) -> None:
    draft = folder / f"{STATE}.draft"
    write_privately(draft, json.dumps({**state, "started_at": utc_now().isoformat()}))
    draft.replace(folder / STATE)


def watch(folder: Path, session: Any, java: subprocess.Popen[bytes], idle_seconds: float) -> None:
    """Until Java ends, or the server idled for so long and is not wanted at this very moment."""
    while java.poll() is None:
        time.sleep(min(_TICK_SECONDS, idle_seconds / 4))
        if idle_for(folder, session) < idle_seconds:
            continue
        with (folder / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if idle_for(folder, session) >= idle_seconds:
                # Under the lock: whoever takes it next sees that there is no server.
                (folder / STATE).unlink()
                return


def idle_for(folder: Path, session: Any) -> float:
    """For how many seconds nothing was executed and nobody touched the lease."""
    executions = _service(session).listActiveExecutions()
    if executions.isRight():
        return 0.0
    nanoseconds: int = session._jvm.java.lang.System.nanoTime() - executions.left().toOption().get()
    return min(nanoseconds / 1e9, time.time() - (folder / LEASE).stat().st_mtime)


def _service(session: Any) -> Any:
    return getattr(getattr(session._jvm, f"{_CONNECT_SERVICE}$"), "MODULE$")


def end_java(java: subprocess.Popen[bytes]) -> None:
    if java.stdin:
        java.stdin.close()
    try:
        java.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def write_privately(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as writer:
        writer.write(text)


if __name__ == "__main__":
    main()
