"""versitygw: an S3 server on a local folder that verifies signatures, and answers 403 to a wrong secret.

``make prove-lakes``, or ``python -m tests.lakes.versitygw``, builds it once, with Go, into the cache. Where it is
not there, tests that need it are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

from dalsegno.spark.cache import cache_folder, locked
from dalsegno.spark.jars import say
from tests.lakes.object_stores import REGION, ObjectStore
from tests.lakes.servers import running
from tests.services.ports import LOOPBACK, free_port

MODULE, VERSION = "github.com/versity/versitygw", "v1.8.0"
#: Of the module's files, as Go's checksum database publishes it.
CHECKSUM = "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc="


def go() -> str | None:
    """The Go tool, if there is one."""
    return shutil.which("go")


def program() -> Path:
    """Where the program is, once it is built."""
    return cache_folder() / "go" / f"versitygw-{VERSION}" / "versitygw"


def versitygw() -> Path:
    """The program, which is built if it is not there; that takes some minutes."""
    folder = program().parent
    folder.mkdir(parents=True, exist_ok=True)
    waiting = partial(say, "Another process is building versitygw; waiting for it.", sys.stderr)
    with locked(folder / "lock", on_wait=waiting):
        if not program().exists():
            say(f"Building versitygw {VERSION} for tests, once: this takes some minutes.", sys.stderr)
            _build(folder)
    return program()


def _build(folder: Path) -> None:
    tool = go()
    if tool is None:
        raise FileNotFoundError("go")
    downloaded = _run([tool, "mod", "download", "-json", f"{MODULE}@{VERSION}"], folder)
    found = json.loads(downloaded)["Sum"]
    if found != CHECKSUM:
        raise ValueError(f"{MODULE}@{VERSION} has the checksum {found}, expected {CHECKSUM}")
    _run([tool, "install", f"{MODULE}/cmd/versitygw@{VERSION}"], folder)


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


@contextmanager
def running_versitygw(folder: Path) -> Iterator[ObjectStore]:
    """A server on loopback with its objects as files below ``folder``, and a secret of its own."""
    port, objects = free_port(), folder / "objects"
    objects.mkdir()
    store = ObjectStore(f"http://{LOOPBACK}:{port}", "versity-access", uuid4().hex)
    secrets = {"ROOT_ACCESS_KEY": store.access_key, "ROOT_SECRET_KEY": store.secret_key}
    command = [str(versitygw()), "--port", f"{LOOPBACK}:{port}", "--region", REGION, "posix", str(objects)]
    with running(command, port, folder / "versitygw.log", {**os.environ, **secrets}):
        yield store


if __name__ == "__main__":
    versitygw()
