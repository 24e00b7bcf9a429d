"""The audit that follows a refresh inside its own step: ``audit_first_runs``.

It is the last statement of the step. If the target is not what the SELECT gives, the statement fails, and with it the
step, before its checkpoint moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dalsegno.capture.lake import Lake
from dalsegno.hints import Verb, action, as_sentence
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.rewrite.tables import quoted
from dalsegno.steps.declared.refreshing import Declared
from dalsegno.store import capture_queries

_FAILED = "The audit of this run failed:"
#: So many digits of floating-point numbers count: their sums depend on the order of addition, in full runs as well.
_DIGITS = 9
_FLOATING = ("float", "double")
#: Captures that were abandoned may lie between those that count.
_LOOKED_AT = 100


def is_due(lake: Lake, consumer: str, first_runs: int) -> bool:
    """Whether fewer captures were committed for a consumer than the runs that are audited."""
    if not first_runs:
        return False
    with lake.store.database.reading() as connection:
        known = capture_queries.listed(
            connection, consumer, pending_only=False, undropped_only=False, limit=_LOOKED_AT + first_runs
        )
    return sum(each.state is CaptureState.COMMITTED for each in known) < first_runs


def audit_statement(declared: Declared, capture: Capture) -> str:
    """Fails if the target is not what the SELECT gives of the sources, as the capture ends."""
    kinds = declared.target_columns()
    columns = ", ".join(comparable(name, kind) for name, kind in kinds.items())
    found = f"SELECT {columns} FROM {declared.target_name.quoted}"
    expected = f"SELECT {columns} FROM (SELECT {as_written(kinds)} FROM (\n{declared.full_query(capture)}\n))"
    said = f"{_FAILED} {declared.target_name} is not what its SELECT gives. Rows that are missing or superfluous: "
    text = said.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"SELECT IF(count(*) = 0, 'equal', raise_error(concat('{text}', count(*)))) AS audit FROM (\n"
        f"({expected} EXCEPT ALL {found})\nUNION ALL\n({found} EXCEPT ALL {expected}))"
    )


def concluded_by_audit(outcome: Failed, capture: Capture) -> Failed:
    """A failure as it is, or if the audit is why, one that no retry repeats, with what to do about it."""
    if _FAILED not in outcome.message:
        return outcome
    undo = action("Its checkpoint did not move. Take back what it wrote", Verb.UNDO, capture=capture.id)
    return replace(outcome, kind=FailureKind.FATAL, hint=as_sentence(undo))


def as_written(kinds: Mapping[str, str]) -> str:
    """The columns as they are once they are written to a table of these types."""
    return ", ".join(f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}" for name, kind in kinds.items())


def comparable(name: str, kind: str) -> str:
    """A column as it can be compared: floating-point numbers without their last digits, maps as text."""
    column = quoted(name)
    if kind in _FLOATING:
        # Adding zero makes one zero of two.
        text = f"format_string('%.{_DIGITS - 1}e', CAST({column} AS DOUBLE) + 0.0D)"
        return f"IF({column} IS NULL, NULL, CAST({text} AS DOUBLE)) AS {column}"
    return f"to_json({column}) AS {column}" if "map<" in kind else column
