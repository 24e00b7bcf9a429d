"""What keeps rows from being written twice or lost, by name, and how to switch it off: to see that it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dalsegno.engine import job_execution, work_log
from dalsegno.iceberg import evidence
from dalsegno.iceberg.evidence import Absent, Unclear
from dalsegno.plan import unfinished_work
from dalsegno.steps.spark import executors, fences
from dalsegno.steps.spark.work import SqlWork
from dalsegno.store import settling, work_units


def _nothing(*_: Any, **__: Any) -> None:
    pass


_verdict = evidence.verdict


def _absent_if_unclear(*arguments: Any) -> evidence.Verdict:
    found = _verdict(*arguments)
    return Absent() if isinstance(found, Unclear) else found


#: Name → what is replaced by what.
PROTECTIONS: dict[str, list[tuple[Any, str, Callable[..., Any]]]] = {
    "looking for the stamp": [(evidence, "stamped", lambda *_: {})],
    "unbroken chain": [(evidence, "verdict", _absent_if_unclear)],
    "ensure_gone": [(executors, "ensure_gone", _nothing)],
    "fence": [(fences, "fence", _nothing), (fences, "is_fenced", lambda *_: True)],
    "hold": [(work_log, "hold", _nothing), (work_log, "refuse_settled", _nothing), (job_execution, "hold", _nothing)],
    "refusal of a changed template": [(SqlWork, "_refuse_other_template", _nothing)],
    "left_behind": [(unfinished_work, "left_behind", _nothing), (unfinished_work, "blocking_commit", _nothing)],
    "rule for commits": [(unfinished_work, "blocking_commit", _nothing)],
    "captures committed together": [(work_units, "together", lambda _, ids: set(ids))],
    "rule for clean": [(settling, "is_worked_on", _nothing), (settling, "refuse_abandon", _nothing)],
    "rule for abandon": [(settling, "refuse_abandon", _nothing)],
    "what is done must still be there": [(SqlWork, "_check_done", _nothing)],
    "session statements are replayed": [(SqlWork, "is_session_statement", lambda *_: False)],
}

#: Name → whether the REST catalog is needed, and form, wrapping, fault, action.
NEEDED_FOR: dict[str, tuple[bool, tuple[str, str, str, str]]] = {
    "looking for the stamp": (False, ("INSERT INTO", "plain", "connection lost after", "run again")),
    "unbroken chain": (False, ("INSERT INTO", "plain", "connection lost after", "others write, target expired")),
    "ensure_gone": (False, ("INSERT INTO", "plain", "connection lost during", "run again")),
    "fence": (True, ("INSERT INTO", "plain", "commit before the next", "run again")),
    "hold": (False, ("UPDATE", "plain", "table missing", "abandon, old run restarted")),
    "refusal of a changed template": (False, ("INSERT INTO, twice", "plain", "error before", "statement added")),
    "left_behind": (False, ("INSERT INTO, twice", "plain", "error before", "step renamed")),
    "rule for commits": (False, ("INSERT INTO, twice", "plain", "error before", "commit by hand")),
    "captures committed together": (
        False,
        ("INSERT INTO", "two captures", "worker killed after a commit step", "run again"),
    ),
    "rule for clean": (False, ("INSERT INTO, twice", "plain", "error before", "clean after weeks")),
    "rule for abandon": (False, ("INSERT INTO, twice", "plain", "error before", "abandon")),
    "what is done must still be there": (
        False,
        ("INSERT INTO, twice", "plain", "error before", "target rolled back"),
    ),
    "session statements are replayed": (False, ("SET VAR from the target", "plain", "error before", "restart")),
}


#: Those that are switched off now.
OFF: list[str] = []


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """In this process, for as long as the block lasts."""
    replaced = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in PROTECTIONS[name]]
    for owner, attribute, stand_in in PROTECTIONS[name]:
        setattr(owner, attribute, stand_in)
    OFF.append(name)
    try:
        yield
    finally:
        OFF.remove(name)
        for owner, attribute, original in replaced:
            setattr(owner, attribute, original)
