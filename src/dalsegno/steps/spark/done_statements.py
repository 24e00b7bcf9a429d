"""What is done of a script, and whether it can be resumed behind that. Nothing is executed or stored here."""

from __future__ import annotations

from collections.abc import Sequence

from dalsegno.iceberg import evidence
from dalsegno.iceberg.evidence import Absent, Unclear
from dalsegno.iceberg.history import RawMetadata
from dalsegno.model.work_units import Statement, StatementState, TableState
from dalsegno.spark.forms import Effect, form_of
from dalsegno.steps.spark.targets import BRANCH

#: How the names of forms begin that change rows, and nothing in the session.
_ROW_CHANGES = frozenset({"INSERT", "FROM", "MERGE", "UPDATE", "DELETE"})


def last_done(statements: Sequence[Statement]) -> int:
    """The number of the last statement that is done; 0 if none is."""
    return max((each.number for each in statements if each.state is StatementState.DONE), default=0)


def newest_done(statements: Sequence[Statement]) -> list[Statement]:
    """The newest statement that is done, of each target by each name: a branch is named like a table."""
    newest: dict[str, dict[tuple[str, ...], Statement]] = {}
    for each in statements:
        if each.state is not StatementState.DONE or not each.target or not each.before:
            continue
        form = form_of(each.text)
        if form.creates or form.drops:
            # Whatever was there before it is not there any longer.
            newest.pop(each.target, None)
        if not form.drops and (not form.creates or (form.effect is Effect.STAMPED and not form.is_idempotent)):
            newest.setdefault(each.target, {})[form.target] = each
    return [each for by_name in newest.values() for each in by_name.values()]


def gone_because(statement: Statement, found: evidence.Verdict, metadata: RawMetadata | None) -> str | None:
    """Why a target does not have what a statement wrote that is done; None if it has, or nobody can tell."""
    before = statement.before or TableState()
    if metadata is None:
        return "the table is gone, or was renamed"
    is_another = before.uuid is not None and metadata["table-uuid"] != before.uuid
    if isinstance(found, Unclear) and (found.is_rolled_back or is_another):
        return found.because
    form = form_of(statement.text)
    # An overwrite without rows leaves nothing; and a person's word counts (``dalsegno resolve``).
    is_traced = form.effect is Effect.STAMPED and "OVERWRITE" not in form.name and statement.executor is not None
    if isinstance(found, Absent) and is_traced:
        return "the snapshot that it made is not in the history, so it was rolled back and has expired"
    is_of_branch = form.target[-1].startswith(BRANCH)
    if isinstance(found, Unclear) and is_traced and not is_of_branch and evidence.began_anew(metadata, before):
        return "the table was replaced since"
    return None


def lost_session_statement(statements: Sequence[Statement]) -> Statement | None:
    """A statement that gave the session something that cannot be made again, though others still need it."""
    last = last_done(statements)
    left = max((each.number for each in statements if _is_left(each)), default=0)
    # What nothing follows need not be made again.
    for each in statements[: min(last, left - 1) if left else 0]:
        form = form_of(each.text)
        has_values = bool(form.variables) and each.variables is not None
        is_lost = form.effect is Effect.SESSION and not form.is_replayable and not has_values
        # A script may have set variables; what only writes to tables, wherever, has not.
        if is_lost or (form.effect is Effect.UNKNOWN and form.name.partition(" ")[0] not in _ROW_CHANGES):
            return each
    return None


def _is_left(statement: Statement) -> bool:
    """Whether a statement is still to be executed, not for the session alone."""
    return statement.state is not StatementState.DONE and form_of(statement.text).effect is not Effect.SESSION
