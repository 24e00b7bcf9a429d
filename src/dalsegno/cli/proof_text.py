"""A proof of a declared table, and its adoption, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted
from dalsegno.cli.tables import Cell, table
from dalsegno.hints import as_sentence

if TYPE_CHECKING:
    from dalsegno.model.proofs import Proof, ProofDifference, ProofStep
    from dalsegno.operations.proving.adopting import Adopted

_MARKS = {"equal": "✔", "differs": "✘", "refused": "!"}


def proof(found: Proof) -> str:
    return "\n".join(_lines(found))


def _lines(found: Proof) -> Iterator[str]:
    header = ("", "change", "strategy", "rows", "seconds", "full", "")
    rows = [_row(number, step) for number, step in enumerate(found.steps, start=1)]
    yield table(header, rows, right=[3, 4, 5])
    yield ""
    yield f"in the history  {_kinds(found.seen)}"
    yield f"made up         {_kinds(found.made_up)}"
    if found.without_history:
        yield f"no history      {', '.join(map(str, found.without_history))}: fewer than two snapshots"
    for step in found.steps:
        if step.refusal:
            yield f"refused         {step.change}: {step.refusal}"
    yield paint(found.verdict, "green" if found.is_proven else "red")
    if found.difference is not None:
        yield from _difference(found.difference)
    yield from (f"Left for dalsegno clean: {problem}" for problem in found.left_over)


def _row(number: int, step: ProofStep) -> tuple[Cell, ...]:
    seconds = ("" if each.seconds is None else f"{each.seconds:.1f}" for each in (step.cost, step.full_cost))
    return (str(number), step.change, step.strategy or None, f"{step.rows:,}", *seconds, _MARKS[step.outcome])


def _kinds(found: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {number} times" if number > 1 else kind for kind, number in found.items()) or "nothing"


def _difference(found: ProofDifference) -> Iterator[str]:
    if found.failure:
        yield f"  {found.strategy}: {found.failure}"
    else:
        missing = f"{counted(found.missing_rows, 'row')} missing, {found.superfluous_rows:,} superfluous"
        yield f"  {found.strategy}: {missing}"
    for each in found.rows:
        yield f"    {each['kind']:<11} expected {_values(each['expected'])}, found {_values(each['found'])}"
    yield ""
    yield found.sql


def _values(rows: list[Mapping[str, Any]]) -> str:
    return "; ".join(", ".join(f"{name}={value}" for name, value in row.items()) for row in rows) or "nothing"


def adopted(found: Adopted) -> str:
    which = "" if found.is_new else ", which has not changed,"
    lines = [f"{found.workflow_id} version {found.version}{which} keeps {found.target} up to date."]
    if found.audit_first_runs:
        why = "some sources have" if found.is_proven else "the sources have"
        lines.append(f"Its first {found.audit_first_runs} runs are each audited, because {why} no history to replay.")
    lines.append(as_sentence(found.first_run))
    return "\n".join(lines)
