"""The outputs that steps of a type have, as far as they are known before a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dalsegno.model.captures import ChangeKind
from dalsegno.model.params import ParamDefinition
from dalsegno.model.workflow import JobStep, Workflow
from dalsegno.spec.block_checks import is_decided
from dalsegno.spec.captures import WrittenCapture, is_capture
from dalsegno.spec.params.defaults import STEP_DEFAULTS
from dalsegno.spec.step_types import block_of, step_type

#: Of a capture as a whole; some are left out where nobody knows them.
OF_CAPTURE = (
    *("has_changes", "capture_id", "is_resumed", "is_full", "has_more", "files", "rows", "bytes"),
    *("partitions", "new_partitions", "reopened_partitions"),
)
#: Of each source. If there are several, the last word of the source's name follows.
OF_SOURCE = (
    *("source_table", "change_table", "after_snapshot", "upto_snapshot"),
    *("partition_filter", "new_partition_filter", "reopened_partition_filter"),
)
#: The same, of a capture that compares both ends of its range.
OF_BOTH_ENDS = ("before_table", "changes_view")
#: Of each column of ``range_columns``, whose name follows.
OF_RANGE = ("min", "max", "range_filter")


@dataclass(frozen=True)
class Outputs:
    """What later steps may refer to."""

    names: frozenset[str]
    #: Beginnings of names whose ends a run decides.
    prefixes: tuple[str, ...] = ()
    #: Names that the step would have with other options, and a hint that says so.
    elsewhere: tuple[tuple[str, str], ...] = ()

    def has(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)


def outputs_by_step(workflow: Workflow) -> dict[str, Outputs]:
    """Of the steps whose outputs are known; others may set any."""
    found = {}
    for step in workflow.all_steps():
        if isinstance(step, JobStep) and step.sub_type is None and (outputs := _outputs(step)) is not None:
            names = outputs.names | step.params.keys() | STEP_DEFAULTS.keys()
            found[step.id] = replace(outputs, names=names)
    return found


def _outputs(step: JobStep) -> Outputs | None:
    if is_capture(step):
        return _of_capture(_literally(step))
    known = step_type(step.type)
    return Outputs(known.outputs) if known and known.outputs is not None else None


def _literally(step: JobStep) -> WrittenCapture:
    """What the step says without parameters: a run may be given others."""
    block = step.params.get(block_of(step.type) or "")
    if block is None or not isinstance(block.value, Mapping) or block.mode is not None:
        return WrittenCapture(step.id, dict.fromkeys(("source_tables", "changes", "data_operations", "range_columns")))
    return WrittenCapture(step.id, {name: _literal(each) for name, each in block.value.items()})


def _literal(given: Any) -> Any:
    if isinstance(given, ParamDefinition):
        return given.value if is_decided(given) and given.mode is None else None
    return given if is_decided(given) else None


def _of_capture(capture: WrittenCapture) -> Outputs:
    names, prefixes, elsewhere = set(OF_CAPTURE), [], []
    words = None if capture.tables is None else last_words(capture.tables)
    compares_ends = _compares_ends(capture)
    of_source = OF_SOURCE if compares_ends is False else (*OF_SOURCE, *OF_BOTH_ENDS)
    if words is None:
        names.update(of_source)
        prefixes += [f"{name}_" for name in of_source]
    else:
        names.update(_of_sources(of_source, words))
    if compares_ends is False:
        elsewhere += [(name, "add to the capture: changes: before_after") for name in _of_sources(OF_BOTH_ENDS, words)]
    if words is not None and len(words) > 1:
        elsewhere += [(name, f"there are several sources: write {name}_{words[0]}") for name in of_source]
    columns = capture.fields.get("range_columns", ())
    if columns is None:
        prefixes += [f"{name}_" for name in OF_RANGE]
    else:
        plain = [re.sub(r"\W", "_", str(column)) for column in ([columns] if isinstance(columns, str) else columns)]
        names.update(f"{name}_{column}" for name in OF_RANGE for column in plain)
    return Outputs(frozenset(names), tuple(prefixes), tuple(elsewhere))


def _of_sources(names: Sequence[str], words: Collection[str] | None) -> Iterator[str]:
    if words is None or len(words) == 1:
        yield from names
    else:
        yield from (f"{name}_{word}" for name in names for word in words)


def last_words(tables: Sequence[str]) -> list[str] | None:
    """The last word of each table's name; None if one is written in a way that hides it."""
    words = [table.rpartition(".")[2].strip('`" ') for table in tables]
    return (
        None
        if any("`" in table or '"' in table or not word for table, word in zip(tables, words, strict=True))
        else words
    )


def _compares_ends(capture: WrittenCapture) -> bool | None:
    """As ``model.captures.capture_spec`` decides; None if a run does."""
    if not capture.knows("changes", "data_operations"):
        return None
    changes, operations = capture.fields.get("changes"), capture.fields.get("data_operations")
    if changes:
        return str(changes) != ChangeKind.ADDED
    named = {str(each).lower() for each in ([operations] if isinstance(operations, str) else operations or ())}
    return bool(named) and named != {"append"}
