"""Who starts a run may set its parameters, but not what its steps execute, unless the author opens that.

What a step executes is its block (``shell``, ``sql``, ``container`` …) and a few parameters beside it. An author opens
it by writing a mode: on the whole block, or on one of its entries. Without a mode it is closed to starts and restarts;
authors, which includes workflows that call another one, may always overwrite it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dalsegno.errors import ParamError
from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamSource
from dalsegno.spec.step_types import block_of, step_type

#: Who sets parameters without having written a definition.
STARTERS = frozenset({ParamSource.LAUNCH, ParamSource.RESTART})

_WHO = {
    ParamSource.LAUNCH: "a start",
    ParamSource.RESTART: "a restart",
    ParamSource.SUBWORKFLOW: "the start of a calling workflow",
}
_SUBWORKFLOW = frozenset({"subworkflow_id", "subworkflow_version"})


def closed_params(kind: str) -> frozenset[str]:
    """The parameters that decide what a step of this kind executes."""
    match kind.lower():
        case "foreach" | "while":
            return frozenset()
        case "subworkflow":
            return _SUBWORKFLOW
    block, known = block_of(kind), step_type(kind)
    return (known.closed_params if known else frozenset()) | ({block} if block else frozenset())


def refuse_closed(
    given: ParamDefinitions, closed: Collection[str], written: Sequence[ParamDefinitions], step_id: str, by: ParamSource
) -> None:
    """``ParamError`` if ``given`` sets something that is ``closed`` and that no author opens in what is ``written``."""
    for name in closed:
        if name in given:
            for path, opens in _closed(name, given[name], [layer[name] for layer in written if name in layer], name):
                raise _refusal(path, opens, step_id, by)


def refuse_new_entries(
    given: ParamDefinitions, name: str, written: Sequence[ParamDefinitions], step_id: str, by: ParamSource
) -> None:
    """``ParamError`` if ``given`` adds an entry to a map, or gives it as anything but a map."""
    if name not in given:
        return
    known = {key for layer in written if name in layer for key in _entries(layer[name])}
    if not isinstance(given[name].value, Mapping):
        raise ParamError(f"Parameter '{name}' of step '{step_id}' is a MAP; {_WHO.get(by, by)} gave something else.")
    for key in given[name].value:
        if key not in known:
            raise ParamError(
                f"Parameter '{name}.{key}' of step '{step_id}' is not declared; {_WHO.get(by, by)} cannot add it.",
                hint=f"The author of the workflow can: add {key} to the {name} of '{step_id}'.",
            )


def _closed(path: str, given: Any, written: Sequence[Any], opens: str) -> Iterator[tuple[str, str]]:
    """What is set of what is closed, each with the parameter whose mode would open it."""
    definitions = [each for each in written if isinstance(each, ParamDefinition)]
    if any(each.mode is not None for each in definitions):
        return
    opens = path if definitions else opens
    value = given.value if isinstance(given, ParamDefinition) else given
    inner = [_entries(each) for each in definitions]
    if not isinstance(value, Mapping) or not any(inner):
        yield path, opens
        return
    for key, item in value.items():
        yield from _closed(f"{path}.{key}", item, [entries[key] for entries in inner if key in entries], opens)


def _entries(definition: ParamDefinition) -> Mapping[str, Any]:
    return definition.value if isinstance(definition.value, Mapping) else {}


def _refusal(path: str, opens: str, step_id: str, by: ParamSource) -> ParamError:
    key = opens.rpartition(".")[2]
    return ParamError(
        f"Parameter '{path}' decides what step '{step_id}' executes; {_WHO.get(by, by)} cannot set it.",
        hint=f"The author can open {opens} with a mode: {key}(mutable_on_start_restart): … "
        "Or the author refers to a parameter there, as ${name}, and you set that one.",
    )
