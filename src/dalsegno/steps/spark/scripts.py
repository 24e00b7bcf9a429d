"""How far the SQL of an attempt is, so that any process can go on with it.

That is kept where the statements are executed: the settings of the attempt's session say which one was begun last.
Whoever takes the attempt over, on whatever machine, attaches to that one and goes on with the next. If the session is
gone, so are its variables and views, and nobody can go on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from dalsegno.spark.connect import Session
from dalsegno.spark.operations import LostOperation, UnknownOperation
from dalsegno.steps import stamps
from dalsegno.steps.contract import Work
from dalsegno.steps.spark import executors, rows, sessions
from dalsegno.steps.spark.session_variables import replayed_variables
from dalsegno.steps.spark.work import SqlWork

if TYPE_CHECKING:
    import pyarrow as pa

#: Settings of the session: the statement that was begun last, and a digest of them all.
_STATEMENT, _SCRIPT = "spark.dalsegno.statement", "spark.dalsegno.script"
#: Files in the attempt's folder: the script is executed from here; and some of it may have been.
_BEGAN, _EXECUTED = "spark-script", "spark-executed"


class Abandoned(Exception):
    """What an earlier process did of the attempt cannot be gone on with."""


def begin(work: Work) -> None:
    """Note that the attempt is SQL, before anything of it is executed."""
    (work.folder / _BEGAN).touch(mode=0o600)


def is_sql(work: Work) -> bool:
    """Whether statements of the attempt are, or were, executed here or on another machine."""
    return (work.folder / _BEGAN).exists() or sessions.HANDLE in (work.handle or {})


def take_over(work: Work) -> None:
    """Note that the attempt is SQL that another machine began: what of it was executed, only its session knows."""
    if not (work.folder / _BEGAN).exists():
        (work.folder / _EXECUTED).touch(mode=0o600)
        begin(work)


def joined(session: Session, work: Work, statements: Sequence[str], conf: Mapping[str, str]) -> int:
    """The statement that was begun last, 0 if none was. The session is this process's from now on."""
    try:
        session.take()
        found = session.settings([_STATEMENT, _SCRIPT])
    except Exception as error:
        if "[INVALID_HANDLE.SESSION_" in str(error):
            raise Abandoned from error
        raise
    if _STATEMENT in found:
        if found.get(_SCRIPT) != _digest(statements):
            # Values in it have changed since.
            raise Abandoned
        return int(found[_STATEMENT])
    if (work.folder / _EXECUTED).exists():
        raise Abandoned
    session.configure(sessions.configuration(session, work, conf) | _position(0, statements))
    return 0


def executed(
    session: Session, work: Work, number: int, statements: Sequence[str], tracked: SqlWork | None
) -> pa.Table | None:
    """Execute a statement; the first rows that it returned, None if it was executed before and they are not known."""
    session.require_ownership()
    (work.folder / _EXECUTED).touch(mode=0o600)
    _prepare(session, work, number, statements, tracked)
    return _followed(session, work, number, statements, tracked, is_begun=False)


def note_begun(session: Session, work: Work, number: int, statements: Sequence[str]) -> None:
    """Say in the session which statement is about to be executed."""
    session.require_ownership()
    (work.folder / _EXECUTED).touch(mode=0o600)
    session.configure(_position(number, statements))


def replayed(session: Session, work: Work, number: int, statements: Sequence[str], tracked: SqlWork) -> None:
    """Give a new session what an earlier one had of a statement that only changes the session."""
    session.require_ownership()
    (work.folder / _EXECUTED).touch(mode=0o600)
    for text in (statements[number - 1], *replayed_variables(tracked.unit.statement(number))):
        session.execute(text, 1)
    tracked.end(number)


def followed(
    session: Session, work: Work, number: int, statements: Sequence[str], tracked: SqlWork | None
) -> pa.Table | None:
    """Wait for the statement that an earlier process began, or may have begun; the same as ``executed``."""
    try:
        return _followed(session, work, number, statements, tracked, is_begun=True)
    except UnknownOperation:
        return executed(session, work, number, statements, tracked)


def _prepare(session: Session, work: Work, number: int, statements: Sequence[str], tracked: SqlWork | None) -> None:
    """Record what is about to be executed, here and in the session; and stamp what it will write."""
    if tracked is not None:
        tracked.begin(number, executors.executor_of(work))
    # All of it each time: a script may reset its settings.
    stamp = stamps.stamp(work, tracked.unit.id if tracked else None) | stamps.statement_stamp(
        number, statements[number - 1]
    )
    session.configure(stamp | _position(number, statements))


def _followed(
    session: Session,
    work: Work,
    number: int,
    statements: Sequence[str],
    tracked: SqlWork | None,
    *,
    is_begun: bool,
) -> pa.Table | None:
    statement = statements[number - 1]
    for name in _names(number):
        try:
            if is_begun:
                return session.attach(name, rows.FETCHED + 1)
            return session.execute(statement, rows.FETCHED + 1, name)
        except LostOperation:
            # The server does not tell how it ended, but its target may.
            session.clear(name)
            if tracked is not None:
                is_written = tracked.is_written(number)
            else:
                is_written = stamps.is_written_by(session, work, number, statement)
            if is_written is None:
                raise Abandoned from None
            if is_written:
                return None
            _prepare(session, work, number, statements, tracked)
            is_begun = False
    raise AssertionError


def _names(number: int) -> Iterator[str]:
    """Those under which a statement is executed: the first, and after each that the server has ended, the next."""
    yield f"statement {number}"
    yield from (f"statement {number} again {times}" for times in count(1))


def _position(number: int, statements: Sequence[str]) -> dict[str, str]:
    return {_STATEMENT: str(number), _SCRIPT: _digest(statements)}


def _digest(statements: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(statements)).encode()).hexdigest()
