"""Which steps capture what is new, and which of them a commit names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dalsegno.model.params import ParamDefinition
from dalsegno.model.workflow import JobStep, Step

#: In lower case. The second is committed with the success of the run, unless a step commits it.
IP_CAPTURE, ICDC = "ipcapture", "icdc"
_IP_COMMIT = "ipcommit"


def is_capture(step: Step) -> bool:
    return isinstance(step, JobStep) and step.type.lower() in (IP_CAPTURE, ICDC)


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
    for block in ("ip_capture", "icdc"):
        defined = step.params.get(block)
        written = {name: each.value for name, each in defined.value.items()} if defined and defined.value else {}
        values = params.get(block) or written
        for name in ("source_tables", "sourceTable", "source_table"):
            if found := values.get(name):
                return [found] if isinstance(found, str) else list(found)
    return []


def committed_by(step: Step) -> str | None:
    """The capture that a step commits, as it is written: perhaps a reference."""
    block = step.params.get("ip_commit")
    if not isinstance(step, JobStep) or step.type.lower() != _IP_COMMIT or block is None or not block.value:
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


def _is_icdc(step: Step) -> bool:
    return isinstance(step, JobStep) and step.type.lower() == ICDC
