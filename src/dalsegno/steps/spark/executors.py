"""Where a statement was executed, and how to be sure that it is not executed any longer.

A statement whose process died may still be at work in Spark; and what Spark sent to the catalog last may arrive there
after somebody looked. So before a target is asked whether it has what the statement writes, the statement must be gone;
and before it is executed again, what is under way must have become impossible (``spark_fences``).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dalsegno.errors import PlatformError
from dalsegno.hints import Verb, action
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.server import java_of, running_in
from dalsegno.steps.contract import Work
from dalsegno.steps.spark import sessions
from dalsegno.steps.spark.applications import ClusterApplication

_GONE_SECONDS = 30.0


def executor_of(work: Work) -> dict[str, Any]:
    """What is remembered of where this attempt executes its statements."""
    if work.settings.spark_remote:
        return {"session": work.key, "remote": _digest(work.settings.spark_remote)}
    server = str(sessions.local_server(work.settings).folder)
    return {"session": work.key, "server": server, "machine": work.machine}


def is_elsewhere(settings: Settings, executor: Mapping[str, Any] | None, machine: str) -> bool:
    """Whether a statement was executed by the Spark of another machine, which cannot be asked from here."""
    if executor is None or "server" not in executor or settings.store.startswith("sqlite:"):
        # Processes that share a file are on one machine, whatever it is called today.
        return False
    return bool(executor.get("machine", machine) != machine)


def ensure_gone(settings: Settings, executor: Mapping[str, Any] | None, machine: str) -> None:
    """See to it that nothing of a statement is at work any longer; ``PlatformError`` if that is not certain.

    ``machine`` is the name of this one.
    """
    if executor is not None and is_elsewhere(settings, executor, machine):
        host = executor["machine"].partition(" ")[0]
        raise PlatformError(
            f"A statement was begun in the Spark server of machine {host!r}. It may still run there, and this machine "
            "cannot ask.",
            hint=f"Run it on {host!r} again.",
            actions=[
                action("If that machine is gone for good, look at the target, then say what it has", Verb.RESOLVE)
            ],
        )
    match executor:
        case {"session": key, "server": folder}:
            server = running_in(Path(folder))
            if server is None:
                _wait_for_java(Path(folder))
                return
            sessions.clear(Session(server.address, session_id_for(key)))
        case {"session": key, "remote": digest}:
            remote = settings.spark_remote
            if not remote or _digest(remote) != digest:
                raise PlatformError(
                    "A statement was begun on another Spark server than the settings name now: whether it is still at "
                    "work there cannot be asked.",
                    hint="Set spark_remote to that server until the statement is settled.",
                )
            sessions.clear(Session(remote, session_id_for(key)))
        case {"has_ended": True}:
            return
        case {"submitted": _, "application": application}:
            ClusterApplication.of_json(application).end()
        case {"submitted": key, "deploy_mode": "cluster"}:
            raise PlatformError(
                f"The driver of attempt {key} was submitted to a cluster, and nobody heard how it ended: it may still "
                "be at work there.",
                hint="See that the application has ended.",
                actions=[action("Then say whether its statements were executed", Verb.RESOLVE)],
            )
        case _:
            return


def _wait_for_java(folder: Path) -> None:
    """The keeper of a local server is gone; its Java goes with it, but perhaps not at the same moment."""
    java = java_of(folder)
    until = time.monotonic() + _GONE_SECONDS
    while java is not None and _is_java(java):
        if time.monotonic() > until:
            raise PlatformError(f"The Spark server in {folder} has lost its keeper, but its Java {java} lives on.")
        time.sleep(0.1)


def _is_java(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not Path("/proc/self").exists():
        return True
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
