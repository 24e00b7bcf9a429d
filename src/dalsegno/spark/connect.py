"""Sessions of a Spark Connect server.

Each attempt of a step has a session of its own, whose id follows from the attempt: so all that the attempt set in
motion can be found and interrupted, by any process, and its settings are nobody else's.

PySpark's client is used without its ``SparkSession``: when the garbage collector takes one of those, it waits for
threads that all sessions of the process share, and so for itself.
"""

from __future__ import annotations

import atexit
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from dalsegno.errors import PlatformError, UserError

if TYPE_CHECKING:
    import grpc
    import pyarrow as pa
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.shell.progress import ProgressHandler

#: Session ids are made of names in here.
_NAMESPACE = uuid.UUID("6f0f6a4c-5d0a-4b8e-9f0e-9c1d6a1b7a55")
#: The client tries so often to reach a server that is gone, within about ten seconds. Its default is ten minutes.
_RETRIES: Mapping[str, Any] = {
    "max_retries": 6,
    "initial_backoff": 100,
    "max_backoff": 4000,
    "backoff_multiplier": 3.0,
}
_INTERRUPT_SECONDS = 120.0

#: (stages, running tasks); each stage has ``stage_id``, ``num_tasks``, ``num_completed_tasks``, ``num_bytes_read``.
OnProgress = Callable[[Iterable[Any], int], None]


def session_id_for(key: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, key))


def session_address(server: str, session_id: str) -> str:
    """A server's address (``sc://…``) with this session in it."""
    parts = [part for part in server.split(";") if part and not part.startswith("session_id=")]
    return ";".join([parts[0].rstrip("/") + "/", *parts[1:], f"session_id={session_id}"])


class Session:
    """A session on the server. It begins with the first call that needs it; opening again means the same one."""

    def __init__(self, server: str, session_id: str) -> None:
        self.address = session_address(server, session_id)
        self._client, self._channel = _connected(self.address)

    @property
    def secrets(self) -> list[str]:
        """What in the address must not be shown: whoever has the token may do all that its owner may."""
        return [part.removeprefix("token=") for part in self.address.split(";") if part.startswith("token=")]

    def configure(self, conf: Mapping[str, str]) -> None:
        from pyspark.sql.connect.proto import ConfigRequest, KeyValue  # noqa: PLC0415 - an extra

        pairs = [KeyValue(key=key, value=value) for key, value in conf.items()]
        self._client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))

    def lacking(self, names: Iterable[str]) -> set[str]:
        """Which of these settings nobody made."""
        wanted = list(names)
        values = self._client.get_config_with_defaults(*((name, None) for name in wanted))
        return {name for name, value in zip(wanted, values, strict=True) if value is None}

    def tag(self, tag: str) -> None:
        """Mark what this thread executes, for people who look at the server."""
        self._client.add_tag(tag)

    def follow(self, on_progress: OnProgress) -> None:
        def handler(stages: Iterable[Any] | None, inflight_tasks: int, **_: Any) -> None:
            if stages:
                on_progress(stages, inflight_tasks)

        # PySpark's types ask for an object of an abstract class; any callable will do.
        self._client.register_progress_handler(cast("ProgressHandler", handler))

    def execute(self, statement: str, most_rows: int) -> pa.Table:
        """Run one statement; the first rows of what it returned."""
        from pyspark.sql.connect.plan import SQL, CachedRelation, Limit  # noqa: PLC0415 - an extra

        # A command is executed by this, of a query it is only made sure that it can be.
        _, properties, _ = self._client.execute_command(SQL(statement).command(self._client))
        result = Limit(CachedRelation(properties["sql_command_result"]), most_rows)
        return self._client.to_table(result.to_proto(self._client), {})[0]

    def interrupt(self) -> list[str]:
        """Ask all that runs in this session to end; the ids of what had not been asked before."""
        return self._client.interrupt_all() or []

    def clear(self) -> None:
        """Interrupt all that runs in this session, and see it gone."""
        asked = set(self.interrupt())
        until = time.monotonic() + _INTERRUPT_SECONDS
        while asked & self.executing():
            if time.monotonic() > until:
                raise PlatformError(f"Spark still works on what was interrupted {_INTERRUPT_SECONDS:.0f} s ago.")
            time.sleep(0.05)

    def executing(self) -> set[str]:
        """What the whole server executes. Its protocol has no question for that, but threads have telling names."""
        # Values, unlike a plain SELECT, are computed where the threads are, and not by an executor.
        query = "SELECT reflect('java.lang.Thread', 'getAllStackTraces') AS threads FROM VALUES (1)"
        threads = str(self.execute(query, 1)["threads"][0])
        return set(re.findall(r"SparkConnectExecuteThread_opId=([0-9a-f-]{36})", threads))

    def release(self) -> None:
        """End the session on the server, and this connection to it."""
        try:
            self._client.release_session()
        finally:
            self.disconnect()

    def disconnect(self) -> None:
        # Not the client's own close: it ends what other sessions of this process share.
        self._channel.close()


def _connected(address: str) -> tuple[SparkConnectClient, grpc.Channel]:
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 - an extra, and slow
        from pyspark.sql.connect.client import DefaultChannelBuilder, SparkConnectClient  # noqa: PLC0415
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            f"Spark steps need PySpark's client, and {error.name or 'a part of it'} is not installed.",
            hint="Type: pip install 'dalsegno[spark]'",
        ) from error

    class Channel(DefaultChannelBuilder):
        def toChannel(self) -> grpc.Channel:
            self.opened = super().toChannel()
            return self.opened

    # What it prints to standard error is in the exception as well.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = Channel(address)
    client = SparkConnectClient(builder)
    client.set_retry_policies([DefaultPolicy(**_RETRIES)])
    # It would ask every server that this process ever used to clean up, which released sessions need not.
    atexit.unregister(client._cleanup_ml_cache)
    return client, builder.opened
