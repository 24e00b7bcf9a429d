"""Which steps capture what is new, and which of them a commit names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dalsegno.model.params import ParamDefinition, ParamDefinitions
from dalsegno.model.workflow import JobStep, Step, Workflow

#: In lower case. The second is committed with the success of the run, unless a step commits it.
IP_CAPTURE, ICDC = "ipcapture", "icdc"
_IP_COMMIT = "ipcommit"
_INCREMENTAL = "incremental"
_BLOCKS = ("ip_capture", "icdc", "incremental")
_SOURCES = ("source_tables", "sourceTable", "source_table", "sources")
_REFERENCE = re.compile(r"\$\{\s*([_a-zA-Z][\-_a-zA-Z0-9]*)\s*\}")


def is_capture(step: Step) -> bool:
    return isinstance(step, JobStep) and step.type.lower() in (IP_CAPTURE, ICDC)


def is_commit(step: Step) -> bool:
    return isinstance(step, JobStep) and step.type.lower() == _IP_COMMIT


def is_declared(step: Step) -> bool:
    """Whether a step declares a table by its SELECT: it captures and commits by itself."""
    return isinstance(step, JobStep) and step.type.lower() == _INCREMENTAL


def is_function(step: Step) -> bool:
    """Whether a function of Python, rather than a SELECT, declares the step's table."""
    block = step.params.get(_INCREMENTAL)
    return block is not None and isinstance(block.value, Mapping) and "file" in block.value


def declared_query(step: Step) -> tuple[str, str] | None:
    """The target and the SELECT of a declared table, as they are written."""
    block = step.params.get(_INCREMENTAL)
    fields = block.value if block is not None and isinstance(block.value, Mapping) else {}
    target, query = (getattr(fields.get(name), "value", None) for name in ("target", "query"))
    return (target, query) if isinstance(target, str) and isinstance(query, str) else None


def declared_consumer(step: Step) -> str | None:
    """Whose checkpoint says how far a declared table is, as it is written; None: the target's own."""
    block = step.params.get(_INCREMENTAL)
    fields = block.value if block is not None and isinstance(block.value, Mapping) else {}
    named = getattr(fields.get("consumer"), "value", None)
    return named if isinstance(named, str) else None


def change_tables(step: Step, params: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The last word of each source's name, and the change table among the parameters that the step has by now."""
    sources = _sources(step, params)
    for source in sources:
        word = source.rpartition(".")[2].strip('`" ')
        # As the step names its outputs.
        name = "change_table" if len(sources) == 1 else f"change_table_{word}"
        has_run = "capture_id" in params
        yield word, params.get(name, "") if has_run else None


def _sources(step: Step, params: Mapping[str, Any]) -> list[str]:
    """As they are written, where the step has not run."""
    for block in _BLOCKS:
        defined = step.params.get(block)
        written = {name: each.value for name, each in defined.value.items()} if defined and defined.value else {}
        values = params.get(block) or written
        for name in _SOURCES:
            if found := values.get(name):
                return [found] if isinstance(found, str) else list(found)
    return []


def committed_by(step: Step) -> str | None:
    """The capture that a step commits, as it is written: perhaps a reference."""
    block = step.params.get("ip_commit")
    if not is_commit(step) or block is None or not block.value:
        return None
    named = block.value.get("capture_step")
    return named.value if isinstance(named, ParamDefinition) and isinstance(named.value, str) else ""


def committed_with_run(steps: Iterable[Step]) -> frozenset[str]:
    """The captures that no step commits, though they are to be: the success of the run does."""
    every = list(steps)
    named = {name for step in every if (name := committed_by(step)) is not None}
    if any("$" in name for name in named):
        # It may mean any of them; a capture must not be committed that a step was to decide about.
        return frozenset()
    return frozenset(step.id for step in every if _is_icdc(step) and step.id not in named)


@dataclass(frozen=True)
class WrittenCapture:
    """What a step captures, as far as it is known before it runs."""

    step_id: str
    #: Its fields; those that a run decides are None.
    fields: Mapping[str, Any]

    @property
    def tables(self) -> tuple[str, ...] | None:
        """None: a run decides."""
        found = next((self.fields[name] for name in _SOURCES if name in self.fields), None)
        return (found,) if isinstance(found, str) else None if found is None else tuple(found)

    @property
    def branch(self) -> str | None:
        return str(self.fields.get("branch", "main")) if self.knows("branch") else None

    def knows(self, *names: str) -> bool:
        """Whether no run decides about these fields."""
        return all(self.fields.get(name, "") is not None for name in names)

    def may_capture(self, table: str) -> bool:
        """Whether a table is among its sources, as far as it is known; one may be written with its catalog."""
        return self.tables is None or any(_are_alike(table, each) for each in self.tables)

    def is_of_branch(self, branch: str | None) -> bool:
        """None: any."""
        return branch is None or self.branch in (None, branch)


def written_captures(workflow: Workflow) -> list[WrittenCapture]:
    return [_written(step, {**workflow.params, **step.params}) for step in workflow.all_steps() if is_capture(step)]


def written_declarations(workflow: Workflow) -> list[WrittenCapture]:
    """The tables that steps declare, with all of their fields."""
    return [_written(step, {**workflow.params, **step.params}) for step in workflow.all_steps() if is_declared(step)]


def watched_captures(workflow: Workflow) -> list[WrittenCapture]:
    """Those, and what steps capture for the tables that they declare."""
    declared = written_declarations(workflow)
    both_ends = {"changes": "before_after"}
    return written_captures(workflow) + [
        WrittenCapture(each.step_id, {**_followed(each.fields), **both_ends, "keys": []}) for each in declared
    ]


def _followed(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a declared table without the sources that are pinned: a change of one starts no run."""
    sources, pinned = fields.get("sources"), fields.get("pinned") or ()
    followed = [each for each in sources if each not in pinned] if isinstance(sources, list) else sources
    return {**fields, "sources": followed}


def _written(step: Step, params: ParamDefinitions) -> WrittenCapture:
    block = next((step.params[name] for name in _BLOCKS if name in step.params), None)
    if block is None or not isinstance(block.value, Mapping):
        # A template's, or an expression's: nothing of it is known.
        return WrittenCapture(step.id, dict.fromkeys((*_SOURCES, "branch", "consumer", "changes", "data_operations")))
    return WrittenCapture(step.id, {name: _known(each, params) for name, each in block.value.items()})


def _known(field: Any, params: ParamDefinitions) -> Any:
    """The value of a field; None if a run decides about it."""
    value = field.value if isinstance(field, ParamDefinition) else field
    if isinstance(value, Mapping):
        inner = {name: _known(each, params) for name, each in value.items()}
        return None if None in inner.values() else inner
    items = [_filled(item, params) for item in (value if isinstance(value, list) else [value])]
    if None in items:
        return None
    return items if isinstance(value, list) else items[0]


def _filled(value: Any, params: ParamDefinitions) -> Any:
    """A text in which references to parameters with plain values are replaced; None if there are others."""
    if not isinstance(value, str):
        return value

    def plain(reference: re.Match[str]) -> str:
        found = params.get(reference[1])
        return found.value if found is not None and isinstance(found.value, str) else "$"

    text = _REFERENCE.sub(plain, value)
    return None if "$" in text else text


def _are_alike(one: str, other: str) -> bool:
    shorter, longer = sorted(([part.strip('`" ') for part in name.split(".")] for name in (one, other)), key=len)
    return longer[-len(shorter) :] == shorter


def _is_icdc(step: Step) -> bool:
    return isinstance(step, JobStep) and step.type.lower() == ICDC
