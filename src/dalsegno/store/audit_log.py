"""Writes who changed what, in the transaction of the change itself.

A verb opens ``recording`` with its caller, and describes what it changes with ``describe``. The transaction that is
open then, or the next one, writes the row at its end. If it rolls back, so does the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dalsegno.model.callers import Caller
from dalsegno.model.captures import run_of_actor

if TYPE_CHECKING:
    from sqlalchemy import Connection

_CURRENT: ContextVar[Change | None] = ContextVar("audited_change", default=None)


@dataclass
class Change:
    """What a caller is about to change; one row of the log."""

    caller: Caller
    verb: str
    at: datetime
    reason: str | None = None
    subject_kind: str = ""
    #: Empty: not known yet, so there is nothing to write.
    subject: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    is_written: bool = False

    def describe(
        self,
        kind: str,
        subject: str,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """What is changed, and how, without secrets. Each description is a row of its own."""
        self.subject_kind, self.subject, self.before, self.after = kind, subject, before, after
        self.is_written = False


@contextmanager
def recording(change: Change) -> Iterator[Change]:
    """Transactions of this thread belong to the change."""
    token = _CURRENT.set(change)
    try:
        yield change
    finally:
        _CURRENT.reset(token)


@contextmanager
def recorded_by(name: str, verb: str, at: datetime, reason: str | None = None) -> Iterator[None]:
    """The same for who calls no verb of ``operations``, as programs that use the library do; not for runs."""
    if current() is not None or run_of_actor(name):
        yield
        return
    with recording(Change(Caller.of(name, ()), verb, at, reason)):
        yield


def current() -> Change | None:
    """The change that a caller is making in this thread. What the engine does by itself is none."""
    return _CURRENT.get()


def describe(
    kind: str, subject: str, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None
) -> None:
    """Say what a caller changes, if one does; to be called inside of the transaction."""
    if (change := current()) is not None:
        change.describe(kind, subject, before, after)


@contextmanager
def undone_with_transaction() -> Iterator[None]:
    """What was described and written in a transaction that fails did not happen."""
    change = current()
    before = dict(vars(change)) if change is not None else {}
    try:
        yield
    except BaseException:
        if change is not None:
            vars(change).update(before)
        raise


@contextmanager
def written_with(connection: Connection) -> Iterator[None]:
    """Write the row of the current change at the end of a transaction, once it is described."""
    yield
    change = current()
    if change is not None and change.subject and not change.is_written:
        from dalsegno.store.audit_tables import audit_log  # noqa: PLC0415 - those who only read do without

        connection.execute(
            audit_log.insert().values(
                recorded_at=change.at,
                caller=change.caller.name,
                roles=sorted(change.caller.roles),
                verb=change.verb,
                subject_kind=change.subject_kind,
                subject=change.subject,
                before_change=change.before,
                after_change=change.after,
                reason=change.reason,
                request_id=change.caller.request_id,
            )
        )
        change.is_written = True
