"""moto: S3 and Glue in one process. It accepts any secret; ``versitygw`` does not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lakes.object_stores import ObjectStore
from tests.lakes.servers import running
from tests.services.ports import LOOPBACK, free_port


@contextmanager
def running_moto(folder: Path) -> Iterator[ObjectStore]:
    """A server on loopback that keeps everything in memory."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    # moto looks for credentials of its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with running(command, port, folder / "moto.log", environment):
        yield ObjectStore(f"http://{LOOPBACK}:{port}", "moto-access", "moto-secret")
