"""Write once for a capture, however often the step is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dalsegno.job import evidence
from dalsegno.job.evidence import WHOLE, Work
from dalsegno.job.spark_tables import SparkTable
from dalsegno.job.step import FAILURE, PART, captures_file, output, stamp
from dalsegno.job.tables import Snapshot, Table, TargetError
from dalsegno.job.targets import Target, target_of

_ATTEMPT = "dalsegno.attempt"
#: What ``is_written`` said no to in this process: from then on the answer may change.
_asked_before_writing: set[tuple[str, str | int | None, str | None]] = set()


def is_written(
    table: Any,
    name: str | None = None,
    *,
    part: str | int | None = None,
    branch: str | None = None,
    missing_ok: bool = False,
) -> bool:
    """Whether a table has what this step, in this or another attempt or run, wrote for the same captures.

    ``table`` is a table of PyIceberg, or a Spark session and ``name`` the table's; or, for any other engine, the
    summaries of the snapshots that lead to the table as it is now. Every branch counts, or the named one. What was
    rolled back does not count. Without a capture there is nothing to look for, so the answer is False.

    ``TargetError``: nobody can tell. A table that Spark does not find is an error, too, unless ``missing_ok``.
    """
    target = target_of(table, name, missing_ok=missing_ok)
    work = Work.of_file(captures_file() or target.told())
    if work is None:
        return False
    table_now = target.read()
    found = evidence.written(table_now, work, _text(part), branch or target.branch)
    asked = (table_now.name, part, branch)
    if not found:
        _asked_before_writing.add(asked)
    elif isinstance(target, SparkTable) and asked not in _asked_before_writing:
        _refuse_own_writes(table_now, found, work)
    return bool(found)


def _refuse_own_writes(table: Table, found: list[Snapshot], work: Work) -> None:
    """A session that is stamped stamps whatever it writes, such as a DELETE before the question."""
    for each in found:
        if each.summary.get(_ATTEMPT) == work.stamp.get(_ATTEMPT) and PART not in each.summary:
            raise TargetError(
                f"This attempt wrote snapshot {each.id} of {table.name} before it asked whether it has written. "
                "Do every write to one table in a job.write of its own, with a part= each."
            )


class Write:
    """One write to one table. False if it was done before."""

    def __init__(self, stamp: Mapping[str, str], *, is_needed: bool) -> None:
        self._stamp, self._is_needed, self.is_nothing = stamp, is_needed, False

    def __bool__(self) -> bool:
        return self._is_needed

    @property
    def stamp(self) -> dict[str, str]:
        """The properties that the snapshot must have; a Spark session has them already."""
        if not self._is_needed:
            raise TargetError("This was written before, and must not be written again: write inside of `if write:`.")
        return dict(self._stamp)

    def nothing(self) -> None:
        """Say that there was nothing to write, so no snapshot is looked for at the end."""
        self.is_nothing = True


@contextmanager
def write(
    table: Any, *, part: str | int | None = None, branch: str | None = None, missing_ok: bool = False
) -> Iterator[Write]:
    """Write to a table once for a capture: a PyIceberg table, or a Spark session and a table's name.

        with job.write(table) as write:
            if write:
                table.append(rows, snapshot_properties=write.stamp)

    One commit for each ``with``: a step that commits to one table several times names each ``part``. At the end the
    table must have a snapshot with the stamp, unless ``write.nothing()`` was called. ``TargetError``: it has not, or
    nobody can tell whether it was written before.
    """
    target = target_of(table, None, missing_ok=missing_ok)
    named = WHOLE if part is None else str(part)
    work = Work.of_file(captures_file() or target.told())
    mark = {**work.stamp, PART: named} if work else stamp(named)
    stamped = target.stamped(mark)
    if work is None:
        with stamped:
            yield Write(mark, is_needed=True)
        return
    branch = branch or target.branch
    before = target.read()
    done = evidence.written(before, work, named, branch)
    if any(each.summary.get(_ATTEMPT) == mark[_ATTEMPT] for each in done):
        raise TargetError(
            f"This attempt has written part {named!r} to {before.name} already: snapshot {done[0].id}. "
            "Do every write to one table in a job.write of its own, with a part= each."
        )
    this = Write(mark, is_needed=not done)
    with stamped:
        yield this
    after = target.read()
    try:
        found = evidence.written(after, work, named, branch)
        mine = [each for each in found if each.id not in before.snapshots]
        if done and mine:
            raise _written_twice(after, done[0], mine[0])
        if not found and not this.is_nothing:
            raise _without_stamp(before, after)
        if len(commits := _commits(target, mine)) > 1:
            raise _several_commits(commits)
    except TargetError as error:
        # If the step were tried again, it could write once more.
        output({FAILURE: str(error)})
        raise


def _commits(target: Target, snapshots: list[Snapshot]) -> list[Snapshot]:
    """One for each commit: in one, PyIceberg may delete and append, with a snapshot each."""
    if isinstance(target, SparkTable):
        return snapshots
    return [each for each in snapshots if each.summary.get("operation") == "append"]


def _written_twice(table: Table, first: Snapshot, second: Snapshot) -> TargetError:
    return TargetError(
        f"Snapshot {first.id} of {table.name} had the rows of this write already, and snapshot {second.id} has them "
        f"again. Roll the table back to the snapshot before {second.id}, and write inside of `if write:`."
    )


def _without_stamp(before: Table, after: Table) -> TargetError:
    others = ", ".join(str(each) for each in after.snapshots if each not in before.snapshots)
    if not others:
        return TargetError(
            f"Nothing was written to {after.name}. If there is nothing to write, call write.nothing(). "
            "If the step writes to another table, name that one in job.write."
        )
    return TargetError(
        f"No new snapshot of {after.name} has the stamp of this write, but there are new ones: {others}. "
        "With PyIceberg, write with snapshot_properties=write.stamp; with Spark, in the session of job.write. "
        "If this step made them, roll the table back to the snapshot before them; then run the step again."
    )


def _several_commits(commits: list[Snapshot]) -> TargetError:
    return TargetError(
        f"One job.write made several commits: snapshots {', '.join(str(each.id) for each in commits)}. Had the step "
        "died between them, the rest would be taken for written. Commit once, or name a part= for each commit."
    )


def _text(part: str | int | None) -> str | None:
    return None if part is None else str(part)
