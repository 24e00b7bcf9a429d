"""Operations of a Spark Connect server that any process can find again.

The id of such an operation is chosen by whoever begins it, and the server executes an id once: who asks for it again is
refused, and may attach to it instead. Then the server tells all that the operation has answered, from the beginning, as
long as nobody said that it need not be kept. PySpark's client says so after every answer; here it is not said before
the session is released.

The client reaches the server by a *stub*, an object with one method for each kind of call. ``KeepingStub`` stands in
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.connect.proto import ExecutePlanRequest, ExecutePlanResponse, ReattachExecuteRequest


class TakenOver(Exception):
    """Another process goes on with the session: this one must not."""


class UnknownOperation(Exception):
    """The server has never heard of the operation."""


class LostOperation(Exception):
    """The server ended the operation because nobody was attached to it, or no longer knows all that it answered."""


#: What the server calls an operation that can no longer be followed from its beginning.
_LOST = ("[INVALID_HANDLE.OPERATION_ABANDONED]", "[INVALID_CURSOR.POSITION_NOT_AVAILABLE]")
_KNOWN = "[INVALID_HANDLE.OPERATION_ALREADY_EXISTS]"


def is_lost(error: Exception) -> bool:
    # The client has no error class for these, and leaves them in the text.
    return any(name in str(error) for name in _LOST)


def is_known(error: Exception) -> bool:
    """Whether the server refused an operation because it executes it, or has executed it."""
    return _KNOWN in str(error)


class KeepingStub:
    """Calls the server, and has it keep what operations with names answer."""

    def __init__(self, stub: Any, require_ownership: Callable[[], None]) -> None:
        self._stub = stub
        #: Raises ``TakenOver``. Attaching ends the attachment of whoever was attached.
        self._require_ownership = require_ownership
        self._kept: set[str] = set()
        #: Operations that are attached to, and not begun: whether the client has asked for it once.
        self._attached: dict[str, bool] = {}

    def keep(self, operation_id: str, *, attach: bool) -> None:
        """What the client executes next under this id is kept; or it is attached to, and not begun."""
        self._kept.add(operation_id)
        self._attached.pop(operation_id, None)
        if attach:
            self._attached[operation_id] = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stub, name)

    def ExecutePlan(self, request: ExecutePlanRequest, metadata: Any) -> Iterator[ExecutePlanResponse]:
        """The client calls this at first, and again when the server does not know the operation."""
        if request.operation_id not in self._attached:
            return self._stub.ExecutePlan(request, metadata=metadata)  # type: ignore[no-any-return]
        if self._attached[request.operation_id]:
            raise UnknownOperation(request.operation_id)
        self._attached[request.operation_id] = True
        return self.ReattachExecute(_attaching_to(request), metadata)

    def ReattachExecute(self, request: ReattachExecuteRequest, metadata: Any) -> Iterator[ExecutePlanResponse]:
        """The client calls this when the connection broke, or another process has attached."""
        if request.operation_id in self._kept:
            self._require_ownership()
        return self._stub.ReattachExecute(request, metadata=metadata)  # type: ignore[no-any-return]

    def ReleaseExecute(self, request: Any, metadata: Any) -> Any:
        if request.operation_id in self._kept:
            return None
        return self._stub.ReleaseExecute(request, metadata=metadata)


def _attaching_to(request: ExecutePlanRequest) -> ReattachExecuteRequest:
    from pyspark.sql.connect.proto import ReattachExecuteRequest  # noqa: PLC0415 - an extra

    return ReattachExecuteRequest(
        session_id=request.session_id,
        user_context=request.user_context,
        operation_id=request.operation_id,
        client_type=request.client_type,
    )
