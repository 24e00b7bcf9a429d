"""What an author wrote that decides about a text: the definitions of all parameters that it refers to, unevaluated.

Two runs of one version may fill a text with different values, such as the time. Whether somebody has edited it is seen
here: in what is written, wherever it is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dalsegno.errors import SelError
from dalsegno.model.params import ParamDefinition, ParamDefinitions, ParamSource
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.literals import all_references

#: Values that are written elsewhere: where the caller is, or with the run's parameters.
_FROM_CALLERS = frozenset(
    {ParamSource.SUBWORKFLOW, ParamSource.FOREACH, ParamSource.WHILE, ParamSource.WORKFLOW_PARAMETER}
)


def template_digest(written: Iterable[Any], layers: Sequence[ParamDefinitions], expressions: Expressions) -> str:
    """A digest of these literals and definitions, and of all that they refer to in the layers, innermost first."""
    found: dict[str, list[Any]] = {}
    waiting: list[Any] = list(written)
    told = [_told(each) for each in waiting]
    while waiting:
        for name in _names(waiting.pop(), expressions):
            if name in found:
                continue
            defined = [layer[name] for layer in layers if name in layer and layer[name].source not in _FROM_CALLERS]
            found[name] = [_told(each) for each in defined]
            waiting.extend(defined)
    content = json.dumps([told, found], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()


def _names(written: Any, expressions: Expressions) -> list[str]:
    if not isinstance(written, ParamDefinition):
        return all_references(written)
    if written.expression is not None:
        try:
            return list(expressions.names_of(written.expression))
        except SelError:
            return []
    if isinstance(written.value, Mapping):
        inner = written.value.values()
        return [name for each in inner for name in _names(each, expressions)] + all_references(
            [each for each in inner if not isinstance(each, ParamDefinition)]
        )
    return all_references(written.value)


def _told(written: Any) -> Any:
    if not isinstance(written, ParamDefinition):
        return written
    if isinstance(written.value, Mapping):
        return {name: _told(each) for name, each in written.value.items()}
    return [written.type.value, written.value, written.expression, written.secret]
