"""What a target should hold, said by a SELECT over the sources that owes nothing to the workflow's own SQL.

A workflow names one for a table under ``oracle``; whoever asks may give another. Every run makes a mistake of the
workflow's SQL, and so does whoever repeats it: only an independent query can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dalsegno.audit.results import AuditRequest, Basis
from dalsegno.audit.steps import Rehearsal
from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.engine.blueprints import Blueprint
from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Step
from dalsegno.spark.connect import Session
from dalsegno.spark.rewriting import Effect, Stand, quoted, renamed, understood
from dalsegno.spark.statements import statements
from dalsegno.spec.captures import declared_consumer, declared_query, is_function
from dalsegno.steps.declared.calling import call
from dalsegno.steps.declared.params import declared_table
from dalsegno.steps.declared.views import over_tables
from dalsegno.steps.environment import inherited

#: (session, a name for each source, what to do with its output)
Call = Callable[[Session, Callable[[TableName], str], Callable[[str], None]], None]


@dataclass(frozen=True)
class Query:
    """One SELECT, checked."""

    basis: Basis
    #: As somebody wrote it; parameters are not filled in, which could be secrets.
    written: str
    #: As Spark is given it.
    text: str
    secrets: tuple[str, ...] = ()
    #: Whose checkpoints say which snapshots of the sources count; None: those that were captured last.
    consumer: str | None = None
    #: Of a table that a function declares: makes the view that the text reads, from the sources.
    call: Call | None = None

    @property
    def name(self) -> str:
        return "The query" if self.basis is Basis.QUERY else "The oracle"


def given_query(lake: Lake, request: AuditRequest) -> dict[TableName, Query]:
    """The query of whoever asks."""
    if request.query is None:
        return {}
    if request.target is None:
        raise UserError("Which table should hold what the query gives?", hint="Name it as 'target'.")
    target = lake.name(request.target)
    return {target: _checked(Query(Basis.QUERY, request.query, request.query), target)}


def oracles_of(lake: Lake, blueprint: Blueprint, rehearsal: Rehearsal) -> dict[TableName, Query]:
    """The workflow's own, with the parameters of a run: what it names, and the SELECTs of tables that it declares."""
    found: dict[TableName, Query] = {}
    declared = [step for step in blueprint.steps.values() if step.id in blueprint.declared]
    for step in declared:
        if (written := declared_query(step)) is not None:
            target, query = _oracle(lake, rehearsal, *written)
            named = declared_consumer(step)
            consumer = rehearsal.filled(named)[0] if named else consumer_of_workflow(str(target))
            # Views are read through: their tables count as of what was captured.
            found[target] = replace(query, text=over_tables(lake, query.text), consumer=consumer)
        elif is_function(step):
            target, query = _function(lake, step, rehearsal)
            found[target] = query
    for name, written_query in blueprint.workflow.oracle.items():
        target, query = _oracle(lake, rehearsal, name, written_query)
        found[target] = query
    return found


def _function(lake: Lake, step: Step, rehearsal: Rehearsal) -> tuple[TableName, Query]:
    """What a function gives for all rows of its sources."""
    work = rehearsal.work(step)
    table = declared_table(work)
    function, target = table.function, lake.name(table.target)
    if function is None:
        raise AssertionError("a table that a SELECT declares")

    def called(session: Session, named: Callable[[TableName], str], say: Callable[[str], None]) -> None:
        relations = [named(lake.name(each)) for each in function.sources]
        session.configure(dict(table.conf))
        call(function, relations, address=session.address, environment=inherited(work), say=say)

    consumer = table.consumer or consumer_of_workflow(str(target))
    written = f"{function.file.path.name}: {function.name}"
    return target, Query(Basis.ORACLE, written, table.query, work.secrets, consumer, called)


def _oracle(lake: Lake, rehearsal: Rehearsal, name: str, written: str) -> tuple[TableName, Query]:
    text, secrets = rehearsal.filled(written)
    target = lake.name(rehearsal.filled(name)[0])
    return target, _checked(Query(Basis.ORACLE, written, text, secrets), target)


def require_same_columns(query: Query, target: TableName, given: Sequence[str], wanted: Sequence[str]) -> None:
    """A column that only one of them has would not be compared, and nobody should take that for agreement."""
    missing = _lacking(wanted, given)
    if missing:
        raise UserError(
            f"{query.name} does not give {', '.join(missing)}, which {target} has.",
            hint=f"Name the columns as the table does: … AS {missing[0]}. Or leave the column out of the comparison.",
        )
    if more := _lacking(given, wanted):
        raise UserError(
            f"{query.name} gives {', '.join(more)}, which {target} does not have: {', '.join(wanted)}.",
            hint="Name the columns as the table does.",
        )


def _lacking(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = {name.lower() for name in others}
    return [name for name in names if name.lower() not in known]


def _checked(query: Query, target: TableName) -> Query:
    found = statements(query.text)
    if len(found) != 1 or understood(found[0]).effect is not Effect.NONE:
        raise UserError(
            f"{query.name} of {target} must be one SELECT, found {len(found)} statements: {query.written[:80]!r}"
        )
    itself = {(target.catalog, *target.identifier): Stand(quoted("itself"))}
    if renamed(found[0], itself) != found[0]:
        raise UserError(
            f"{query.name} of {target} reads {target} itself, so it would agree with whatever is there.",
            hint="Compute what the table should hold from the sources.",
        )
    return Query(query.basis, query.written, found[0], query.secrets)
