"""What we remember: captures, checkpoints, and who moved them; in SQLite or in PostgreSQL.

The promise
    A range of a table is processed once. The store keeps its half of that promise with three rules:

    1.  A capture stays pending until it is committed or abandoned; a consumer has at most one per table.
    2.  A capture can be recorded only where the checkpoint stands at the start of its range.
    3.  A capture can be committed only where the checkpoint *still* stands there; the move of the
        checkpoint, its entry in the history and the capture's new state are one transaction.

    ``tests/property/test_exactly_once.py`` leaves rules out and shows what goes wrong without them.

How it holds when several do something at once
    All changes to what one consumer has are made one after the other. SQLite lets one transaction write
    at a time, and ours say so when they begin (``BEGIN IMMEDIATE``). PostgreSQL gets one advisory lock
    per consumer and transaction, taken before anything is decided. It is one lock, so there is no order
    to get wrong; and it holds for a checkpoint that does not exist yet, which a row lock cannot do. Below
    that, each statement that changes state has its requirement in its ``WHERE``, and a partial unique
    index carries rule 1.

How it holds when somebody dies
    One operation is one transaction, and every operation may be repeated: recording the same capture
    again, committing twice, abandoning twice all end as they did the first time. So "the connection
    broke, and we do not know whether it was done" has one answer: do it again. Only a checkpoint that is
    set by hand is refused the second time; the message then says that it was you.

Where things are
    ``tables``        the schema, as it is now
    ``migrations``    how a database gets there; Alembic is imported only for one that is behind
    ``database``      engines, transactions, the lock
    ``failures``      what a driver complains about, in our words and without passwords
    ``reading``       plain SQL that reads, with SQLAlchemy or without; ``sqlite_file``: a store that is only read
    ``store_reader``  what a store says of captures and checkpoints, by ``capture_queries``
    ``run_queries``   what is read of workflows and runs
    ``rows``          from the model to rows
    ``captures``      statements that change captures
    ``checkpoints``   statements that move checkpoints
    ``refusals``      what we say when a rule is about to be broken
    ``store``         the operations, each one transaction
    ``run_tables``    the schema of workflows and runs, with ``workflows``, ``runs``, ``flows``, ``queue``, ``triggers``
    ``refresh_tables`` what refreshes of declared tables did, written by ``refreshes``, read by ``refresh_queries``
    ``signals``       what was announced, and who waits; ``signal_subscriptions``: which triggers are told of it
    ``service_tables`` the schema of what the service is operated with, with ``tokens``, ``outbox``, ``lags``
    ``audit_log``     who changed what, written in the transaction of the change; ``audit_tables``: its table;
                      ``audit_queries``: what is read of it
    ``retention``     which finished runs may go; ``measures``: what the store holds, counted

Captures, checkpoints and refreshes are never deleted: they are what an operator looks at a month later, and they are
small. Times are whole microseconds of UTC; SQLite has no type for them and
holds integers.

The file of a SQLite store is the store's own. Python's ``sqlite3`` and the bundled SQLite must not both
have it open in one process: when one closes it, the operating system takes away the other's locks too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalsegno.store.capture_queries import CheckpointPosition
    from dalsegno.store.store import Commit, Store

__all__ = ["CheckpointPosition", "Commit", "Store"]

_HOMES = {
    "Commit": "dalsegno.store.store",
    "CheckpointPosition": "dalsegno.store.capture_queries",
    "Store": "dalsegno.store.store",
}


def __getattr__(name: str) -> Any:
    """Import on first use: who only reads need not wait for SQLAlchemy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dalsegno.store' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
