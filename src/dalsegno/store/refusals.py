"""What we say when a rule is about to be broken: what was expected, what was found, who did it, what now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dalsegno.errors import CapturePending, CaptureSettled, CheckpointMoved, UnknownName, UserError
from dalsegno.hints import Action, Verb, action
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.model.snapshots import Position
from dalsegno.model.tables import TableName

if TYPE_CHECKING:
    from dalsegno.store.capture_queries import CheckpointPosition

CAPTURE_AGAIN = "Capture again: the next capture starts where the checkpoint is now."
LOOK_AGAIN = action("See where it is now", Verb.LIST_CHECKPOINTS)


def checkpoint_moved(
    consumer: str,
    table: TableName,
    expected: Position | None,
    found: CheckpointPosition | None,
    *,
    next_step: str | Action = CAPTURE_AGAIN,
) -> CheckpointMoved:
    at = found.position if found else None
    message = f"{consumer} expected its checkpoint on {table} to be {_at(expected, at)}, but it is {_at(at, expected)}."
    if found:
        cause = f"with capture {found.capture_id}" if found.capture_id else "by hand"
        message += f" {found.moved_by} moved it {cause} at {_time(found.moved_at)} ({found.reason})."
    message += " Nothing was changed and nothing was lost."
    if isinstance(next_step, Action):
        return CheckpointMoved(message, actions=[next_step])
    return CheckpointMoved(message, hint=next_step)


def _at(position: Position | None, other: Position | None) -> str:
    """Where it is, with as much detail as it takes to tell it from the other."""
    if position is None:
        return "not set"
    text = f"at {position}"
    if other and other.branch != position.branch:
        text += f" of branch {position.branch}"
    if other and other.table_uuid != position.table_uuid:
        text += f" of the table with uuid {position.table_uuid}"
    return text


def give_up(capture_id: str) -> Action:
    return action("To abandon it, so that the next capture covers its rows", Verb.ABANDON, capture=capture_id)


def settle_first(capture_id: str) -> list[Action]:
    """What to do about a pending capture; what loses nothing comes first."""
    done = action("Only if a job has processed its rows, to commit it", Verb.COMMIT, capture=capture_id)
    return [give_up(capture_id), done]


def capture_pending(table: TableName, holder: Capture) -> CapturePending:
    return CapturePending(
        f"{holder.consumer} has a pending capture of {table}: {holder.id}, {holder.state.value},"
        f" made by {holder.created_by} at {_time(holder.created_at)}.",
        capture_id=holder.id,
        actions=settle_first(holder.id),
    )


def capture_settled(capture: Capture) -> CaptureSettled:
    """The capture was settled in another way than is asked for now."""
    settled_at = f" at {_time(capture.settled_at)}" if capture.settled_at else ""
    message = f"Capture {capture.id} was {capture.state.value} by {capture.settled_by}{settled_at}"
    if capture.state is CaptureState.ABANDONED:
        return CaptureSettled(
            f"{message}: {capture.reason or 'no reason given'}. The checkpoint did not move.",
            hint="Capture again: the next capture takes the same range.",
        )
    return CaptureSettled(
        f"{message}: its range counts as processed.",
        hint="To process it once more, remove its rows from the targets first.",
        actions=[
            action(
                "Then set the checkpoint back",
                Verb.SET_CHECKPOINT,
                table=str(each.table),
                consumer=capture.consumer,
                to=str(each.after.snapshot_id or "earliest"),
                reprocess=True,
            )
            for each in capture.tables
        ],
    )


def not_ready(capture: Capture) -> UserError:
    return UserError(
        f"Capture {capture.id} is not ready: its change tables were not finished.",
        hint="Run capture again to finish it.",
    )


def still_pending(capture: Capture) -> UserError:
    return UserError(
        f"Capture {capture.id} of {capture.consumer} is still pending ({capture.state.value}).",
        hint="Commit or abandon it before its change tables are dropped.",
    )


def change_table_taken(change_table: TableName, holder: Capture) -> UserError:
    return UserError(
        f"The change table {change_table} belongs to capture {holder.id} of {holder.consumer}.",
        hint="Choose another name, or drop that capture first.",
    )


def unknown_capture(asked: str, known: Sequence[str]) -> UnknownName:
    close = get_close_matches(asked, known, n=3)
    return UnknownName(
        f"There is no capture {asked!r}.",
        hint=f"Did you mean {' or '.join(close)}?" if close else None,
        actions=[] if close else [action("See them all", Verb.LIST_CAPTURES, all=True)],
    )


def ambiguous_capture(asked: str, matches: Sequence[str]) -> UnknownName:
    return UnknownName(
        f"{asked!r} is the beginning of {len(matches)} captures: {', '.join(matches[:5])}"
        f"{', …' if len(matches) > 5 else ''}.",  # noqa: PLR2004 (as many as are shown)
        hint="Type more of it.",
    )


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
