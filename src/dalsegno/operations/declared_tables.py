"""Tables that steps declare by a SELECT, when a workflow is pushed: their sources, ``SELECT *``, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake_reader import table_name
from dalsegno.errors import DalsegnoError, PlatformError, UserError
from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.tables import TableName
from dalsegno.model.workflow import Definition, ForeachStep, Step, WhileStep
from dalsegno.settings import Settings
from dalsegno.spec.captures import is_declared, is_function
from dalsegno.spec.nodes import NOWHERE, SourceLocation
from dalsegno.spec.problems import Problems
from dalsegno.spec.step_order import following, order_of

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake

_BLOCK = "incremental"
Marks = Mapping[tuple[str, ...], SourceLocation]


def with_declared_tables(definition: Definition, marks: Marks, settings: Settings, problems: Problems) -> Definition:
    """The definition with the sources of each declared table, and ``SELECT *`` as the columns that there are now."""
    if not any(is_declared(step) for step in definition.workflow.all_steps()):
        return definition
    reader = _Reader(settings, marks, problems)
    steps = reader.steps(definition.workflow.steps)
    return replace(definition, workflow=replace(definition.workflow, steps=steps))


class _Reader:
    def __init__(self, settings: Settings, marks: Marks, problems: Problems) -> None:
        self._settings = settings
        self._marks = marks
        self._problems = problems
        self._writers: dict[TableName, str] = {}

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        found = [
            replace(step, steps=self.steps(step.steps)) if isinstance(step, ForeachStep | WhileStep) else step
            for step in steps
        ]
        return _in_order([self._declared(step) if is_declared(step) else step for step in found], self._settings)

    def _declared(self, step: Step) -> Step:
        block = step.params.get(_BLOCK)
        fields: Mapping[str, Any] = block.value if block is not None and isinstance(block.value, Mapping) else {}
        query, target = _literal(fields.get("query")), _literal(fields.get("target"))
        if target is not None:
            self._check_target(step.id, target)
        if block is not None and is_function(step):
            return self._function(step, block, fields, target)
        if block is None or query is None:
            return step
        try:
            query, sources, over_tables = _understood(query, self._settings)
        except UserError as error:
            self._problem(step.id, "query", error)
            return step
        self._check_facts(step.id, fields)
        text = replace(fields["query"], value=query)
        named = ParamDefinition(ParamType.STRING_ARRAY, [str(each) for each in sources])
        pinned = self._pinned(step.id, fields, over_tables, sources)
        written = {**fields, "query": text, "sources": named, **pinned, **self._consumer(fields, target)}
        return replace(step, params={**step.params, _BLOCK: replace(block, value=written)})

    def _function(self, step: Step, block: ParamDefinition, fields: Mapping[str, Any], target: str | None) -> Step:
        """The step with the full names of the sources that its author names: nobody can derive them from code."""
        given = getattr(fields.get("sources"), "value", None)
        names = [_literal(each) for each in (given if isinstance(given, list) else [given])]
        try:
            full = [str(table_name(self._settings, each)) for each in names if each is not None]
        except UserError as error:
            self._problem(step.id, "sources", error)
            return step
        sources = {"sources": ParamDefinition(ParamType.STRING_ARRAY, full)} if len(full) == len(names) else {}
        written = {**fields, **sources, **self._consumer(fields, target)}
        return replace(step, params={**step.params, _BLOCK: replace(block, value=written)})

    def _check_facts(self, step_id: str, fields: Mapping[str, Any]) -> None:
        """Whether the facts that no run decides about are understood; of which tables they are, a run sees."""
        from dalsegno.rewrite.facts import fact_of  # noqa: PLC0415 - as for queries

        given = getattr(fields.get("facts"), "value", None)
        for text in given if isinstance(given, list) else [given] if isinstance(given, str) else []:
            if (literal := _literal(text)) is not None:
                try:
                    fact_of(literal)
                except UserError as error:
                    self._problem(step_id, "facts", error)

    def _pinned(
        self, step_id: str, fields: Mapping[str, Any], query: str, sources: Sequence[TableName]
    ) -> dict[str, ParamDefinition]:
        """The sources that no table trigger need watch."""
        given = getattr(fields.get("dimensions"), "value", None)
        if given is None:
            return {}
        from dalsegno.steps.declared.dimensions import pinned_names  # noqa: PLC0415 - as for queries
        from dalsegno.steps.declared.params import dimensions_of  # noqa: PLC0415

        words = (
            {name: getattr(each, "value", each) for name, each in given.items()}
            if isinstance(given, Mapping)
            else given
        )
        try:
            named = partial(table_name, self._settings)
            found = pinned_names(named, dimensions_of(words), query, sources)
        except UserError as error:
            self._problem(step_id, "dimensions", error)
            return {}
        return {"pinned": ParamDefinition(ParamType.STRING_ARRAY, sorted(map(str, found)))} if found else {}

    def _consumer(self, fields: Mapping[str, Any], target: str | None) -> dict[str, ParamDefinition]:
        """Whose checkpoint it is, so that triggers know it: the step itself would choose the same."""
        if target is None or "consumer" in fields:
            return {}
        try:
            name = consumer_of_workflow(str(table_name(self._settings, target)))
        except UserError:
            return {}
        return {"consumer": ParamDefinition(ParamType.STRING, name)}

    def _check_target(self, step_id: str, target: str) -> None:
        try:
            name = table_name(self._settings, target)
        except UserError as error:
            self._problem(step_id, "target", error)
            return
        other = self._writers.setdefault(name, step_id)
        if other != step_id:
            hint = "Give each step a target of its own."
            self._problem(step_id, "target", UserError(f"{other!r} and {step_id!r} both declare {name}.", hint=hint))

    def _problem(self, step_id: str, field: str, error: UserError) -> None:
        mark = self._marks.get(("field", step_id, _BLOCK, field), NOWHERE)
        self._problems.add(error.message.rstrip("."), mark, f"{_BLOCK}.{field}", error.hint)


def sources_of_step(step: Step) -> tuple[str, ...]:
    """The tables that a declared table is made of, as they were found when it was pushed."""
    return field_texts(step, "sources")


def field_texts(step: Step, name: str) -> tuple[str, ...]:
    """A field of a declared table that is a list."""
    block = step.params.get(_BLOCK)
    named = block.value.get(name) if block is not None and isinstance(block.value, Mapping) else None
    return tuple(named.value) if isinstance(named, ParamDefinition) and isinstance(named.value, list) else ()


def _literal(given: Any) -> str | None:
    """A text that no run decides about."""
    value = given.value if isinstance(given, ParamDefinition) else given
    return value if isinstance(value, str) and "${" not in value else None


def _understood(query: str, settings: Settings) -> tuple[str, list[TableName], str]:
    """The query without ``SELECT *``, the tables that it reads, also through views, and the query over these."""
    # Most workflows declare nothing, and it takes long to import.
    from dalsegno.capture.lake import Lake  # noqa: PLC0415
    from dalsegno.rewrite.analysis import tables_in  # noqa: PLC0415
    from dalsegno.steps.declared.views import over_tables  # noqa: PLC0415

    with Lake.open(settings) as lake:
        try:
            expanded_query = over_tables(lake, query)
        except PlatformError:
            # A catalog that cannot be reached now: runs see the views.
            expanded_query = query
        sources = list(dict.fromkeys(table_name(settings, ".".join(name)) for name in tables_in(expanded_query)))
        return (_frozen(lake, query, expanded_query) if "*" in query else query), sources, expanded_query


def _frozen(lake: Lake, query: str, expanded_query: str) -> str:
    """The query without ``SELECT *``, if its tables are there; otherwise the first run of it decides."""
    from dalsegno.rewrite.analysis import expanded, tables_in  # noqa: PLC0415
    from dalsegno.steps.declared.sources import current_namespace, described, sources_of  # noqa: PLC0415
    from dalsegno.steps.declared.views import described_view  # noqa: PLC0415

    try:
        tables = [described(each) for each in sources_of(lake, expanded_query).values()]
    except DalsegnoError:
        return query
    named = (described_view(lake, lake.name(".".join(name))) for name in tables_in(query))
    return expanded(query, [*tables, *filter(None, named)], current=current_namespace(lake))


def _in_order(steps: Sequence[Step], settings: Settings) -> tuple[Step, ...]:
    """Let a table that reads another one's target come after it, where the author wrote no order."""
    edges = following(steps)
    order = order_of(edges)
    targets = {_target(step, settings): step.id for step in steps if is_declared(step)}
    if order is None or len(edges) != len(steps):
        return tuple(steps)
    for step in steps:
        for source in sources_of_step(step):
            before = targets.get(source)
            if (
                before
                and before != step.id
                and not (order.is_before(before, step.id) or order.is_before(step.id, before))
            ):
                edges[before][step.id] = None
    if order_of(edges) is None:
        # They read each other: in whatever order, each sees what the other has written so far.
        return tuple(steps)
    return tuple(replace(step, successors={**step.successors, **edges[step.id]}) for step in steps)


def _target(step: Step, settings: Settings) -> str:
    block = step.params.get(_BLOCK)
    target = _literal(block.value.get("target")) if block is not None and isinstance(block.value, Mapping) else None
    try:
        return "" if target is None else str(table_name(settings, target))
    except UserError:
        return ""
