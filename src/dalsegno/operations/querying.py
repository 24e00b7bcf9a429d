"""A query on the warm Spark: rows for people who want to look, and nothing that writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dalsegno.errors import PlatformError, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.outcomes import FailureKind
from dalsegno.settings import Settings
from dalsegno.spark.failures import explained
from dalsegno.spark.forms import Effect, form_of
from dalsegno.spark.statements import statements
from dalsegno.steps.spark.rows import plain_value
from dalsegno.steps.spark.sessions import check_stores, opened_for


@dataclass(frozen=True)
class QueryResult:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: Whether there are more rows than were fetched.
    has_more: bool


def query(settings: Settings, sql: str, *, limit: int, say: Callable[[str], None]) -> QueryResult:
    """The first rows that a query returns."""
    [statement, *more] = statements(sql) or [""]
    if more:
        raise UserError(f"There are {len(more) + 1} statements; expected one query.")
    form = form_of(statement)
    if form.effect is not Effect.READ:
        why = f", because {form.because}" if form.because else ""
        raise UserError(
            f"Only queries are executed here, and {form.name or 'this'} is not one{why}.",
            hint="Put a statement that writes into a Spark step of a workflow.",
            actions=[action("Then run it", Verb.RUN)],
        )
    check_stores(settings, [statement])
    session = opened_for(settings, f"query-{uuid4().hex}", say)
    try:
        found = session.execute(statement, limit + 1)
    except Exception as error:
        failure = explained(error)
        kind = PlatformError if failure.kind is FailureKind.PLATFORM else UserError
        raise kind(failure.message, hint=failure.hint) from error
    finally:
        session.release()
    rows = [
        [None if value is None else plain_value(value) for value in column.slice(0, limit).to_pylist()]
        for column in found.columns
    ]
    return QueryResult(tuple(found.column_names), tuple(zip(*rows, strict=True)), found.num_rows > limit)
