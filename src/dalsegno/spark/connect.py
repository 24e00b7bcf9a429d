"""Sessions of a Spark Connect server.

Each attempt of a step has a session of its own, whose id follows from the attempt: so all that the attempt set in
motion can be found, by any process, to be interrupted or to be gone on with; and its settings are nobody else's.

Whoever goes on with a session of another process takes it, by leaving a word in its settings that only they know. The
other one may still be alive: it finds another's word as soon as it needs a new connection or wants to execute more.

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
from dalsegno.spark.operations import KeepingStub, LostOperation, TakenOver, is_known, is_lost

if TYPE_CHECKING:
    import grpc
    import pyarrow as pa
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.proto import ExecutePlanRequest
    from pyspark.sql.connect.shell.progress import ProgressHandler

#: Ids of sessions and of operations are made of names in here.
_NAMESPACE = uuid.UUID("6f0f6a4c-5d0a-4b8e-9f0e-9c1d6a1b7a55")
#: The client tries so often to reach a server that is gone, within about ten seconds. Its default is ten minutes.
_RETRIES: Mapping[str, Any] = {
    "max_retries": 6,
    "initial_backoff": 100,
    "max_backoff": 4000,
    "backoff_multiplier": 3.0,
}
_INTERRUPT_SECONDS = 120.0
#: The setting that says who goes on with a session.
_OWNER = "spark.dalsegno.owner"

#: (stages, running tasks); each stage has ``stage_id``, ``num_tasks``, ``num_completed_tasks``, ``num_bytes_read``.
OnProgress = Callable[[Iterable[Any], int], None]


def session_id_for(key: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, key))


def operation_id_for(session_id: str, name: str) -> str:
    """By which the server knows what is executed under a name in a session."""
    return str(uuid.uuid5(_NAMESPACE, f"{session_id}/{name}"))


def session_address(server: str, session_id: str) -> str:
    """A server's address (``sc://…``) with this session in it."""
    parts = [part for part in server.split(";") if part and not part.startswith("session_id=")]
    return ";".join([parts[0].rstrip("/") + "/", *parts[1:], f"session_id={session_id}"])


class Session:
    """A session on the server. It begins with the first call that needs it; opening again means the same one."""

    def __init__(self, server: str, session_id: str) -> None:
        self.address = session_address(server, session_id)
        self._id = session_id
        self._owner = uuid.uuid4().hex
        self._client, self._channel = _connected(self.address)
        self._stub = KeepingStub(self._client._stub, self.require_ownership)
        self._client._stub = cast("Any", self._stub)

    @property
    def secrets(self) -> list[str]:
        """What in the address must not be shown: whoever has the token may do all that its owner may."""
        return [part.removeprefix("token=") for part in self.address.split(";") if part.startswith("token=")]

    def configure(self, conf: Mapping[str, str]) -> None:
        from pyspark.sql.connect.proto import ConfigRequest, KeyValue  # noqa: PLC0415 - an extra

        pairs = [KeyValue(key=key, value=value) for key, value in conf.items()]
        self._client.config(ConfigRequest.Operation(set=ConfigRequest.Set(pairs=pairs)))

    def settings(self, names: Iterable[str]) -> dict[str, str]:
        """The values of those of these settings that somebody made."""
        wanted = list(names)
        values = self._client.get_config_with_defaults(*((name, None) for name in wanted))
        return {name: value for name, value in zip(wanted, values, strict=True) if value is not None}

    def take(self) -> None:
        """From now on this process goes on with the session, and nobody else."""
        self.configure({_OWNER: self._owner})

    def require_ownership(self) -> None:
        """Raise ``TakenOver`` if another process has taken the session."""
        # A script may have reset all settings.
        if self.settings([_OWNER]).get(_OWNER, self._owner) != self._owner:
            raise TakenOver

    def tag(self, tag: str) -> None:
        """Mark what this thread executes, for people who look at the server."""
        self._client.add_tag(tag)

    def follow(self, on_progress: OnProgress) -> None:
        def handler(stages: Iterable[Any] | None, inflight_tasks: int, **_: Any) -> None:
            if stages:
                on_progress(stages, inflight_tasks)

        # PySpark's types ask for an object of an abstract class; any callable will do.
        self._client.register_progress_handler(cast("ProgressHandler", handler))

    def execute(self, statement: str, most_rows: int, name: str = "") -> pa.Table:
        """Run one statement; the first rows of what it returned.

        One with a name is executed once, whoever asks for it how often; every process can attach to it.
        """
        from pyspark.sql.connect.plan import SQL  # noqa: PLC0415 - an extra

        request = self._request(name)
        self._client._set_command_in_plan(request.plan, SQL(statement).command(self._client))
        return self._rows(self._answer(request, name)[1], most_rows, name)

    def attach(self, name: str, most_rows: int) -> pa.Table:
        """Wait for the statement that was begun under this name; the first rows of what it returned.

        ``UnknownOperation``, ``LostOperation``: there is none, or it can no longer be told how it ended.
        """
        return self._rows(self._answer(self._request(name), name, attach=True)[1], most_rows, name)

    def _rows(self, properties: Mapping[str, Any], most_rows: int, name: str) -> pa.Table:
        from pyspark.sql.connect.plan import CachedRelation, Limit  # noqa: PLC0415 - an extra

        # A command has been executed by now, of a query it is only made sure that it can be.
        name = name and f"{name} rows"
        request = self._request(name)
        result = Limit(CachedRelation(properties["sql_command_result"]), most_rows)
        request.plan.CopyFrom(result.to_proto(self._client))
        return self._answer(request, name)[0]

    def _request(self, name: str) -> ExecutePlanRequest:
        operation_id = operation_id_for(self._id, name) if name else None
        return self._client._execute_plan_request_with_metadata(operation_id)

    def _answer(
        self, request: ExecutePlanRequest, name: str, *, attach: bool = False
    ) -> tuple[pa.Table, dict[str, Any]]:
        """Rows, and other answers by the names of their kinds."""
        if name:
            self._stub.keep(request.operation_id, attach=attach)
        try:
            rows, _, _, _, properties = self._client._execute_and_fetch(request, {})
        except Exception as error:
            if name and is_lost(error):
                raise LostOperation(name) from error
            if not (name and is_known(error)) or attach:
                raise
            self.require_ownership()
            return self._answer(self._request(name), name, attach=True)
        return cast("pa.Table", rows), properties

    def interrupt(self) -> list[str]:
        """Ask all that runs in this session to end; the ids of what had not been asked before."""
        return self._client.interrupt_all() or []

    def clear(self, *names: str) -> None:
        """Interrupt all that runs in this session, and see it gone; what was begun under these names in any case."""
        asked = {*self.interrupt(), *(operation_id_for(self._id, name) for name in names)}
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

    def release_own(self) -> None:
        """The same, unless another process has taken the session. A server that cannot be reached is left alone."""
        self._client.set_retry_policies([])
        try:
            self.require_ownership()
            self._client.release_session()
        except TakenOver:
            pass
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
