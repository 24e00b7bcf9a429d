"""What a job hands back: new values for its step's parameters, and new parameters.

Maestro takes values for declared parameters only. Here a job may also set names that nobody declared; they get the
type that their value has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dalsegno.errors import ParamError
from dalsegno.model.params import Param, ParamDefinitions, ParamMode, Params, ParamSource, ParamType
from dalsegno.spec.params import validators
from dalsegno.spec.params.context import Context
from dalsegno.spec.params.defaults import STEP_DEFAULTS
from dalsegno.spec.params.secrets import Mask
from dalsegno.spec.params.values import cast, type_of

NAME = re.compile(r"(?!.*__)[_a-zA-Z][-._a-zA-Z0-9]*")
LONGEST_NAME = 128


def apply_outputs(
    params: Params,
    outputs: Mapping[str, Any],
    context: Context,
    *,
    definitions: ParamDefinitions | None = None,
    secrets: Iterable[str] = (),
) -> dict[str, Param]:
    """The parameters after the job. A declared one must be MUTABLE, and keeps its type; secrets are cut out."""
    mask = Mask(secrets)
    found = dict(params)
    for name, value in outputs.items():
        try:
            output = _output(name, mask.everywhere(value), params.get(name))
        except ParamError as refused:
            raise ParamError(f"Output '{name}': {mask(refused.message)}", hint=refused.hint) from None
        definition = (definitions or {}).get(name)
        if definition is not None and definition.validator is not None:
            validators.check(name, definition.validator, output, context.expressions, context.now)
        found[name] = output
    return found


def _output(name: str, value: Any, declared: Param | None) -> Param:
    if name in STEP_DEFAULTS:
        raise ParamError("this parameter is set by dalsegno alone.", hint="Give the output another name.")
    if declared is None:
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise ParamError(
                "a parameter's name begins with a letter or '_', goes on with letters, digits, '_', '-' and '.', "
                f"and has no '__' and at most {LONGEST_NAME} characters."
            )
        return Param(type_of(value), cast(value, type_of(value)), source=ParamSource.OUTPUT_PARAMETER)
    if declared.mode is not ParamMode.MUTABLE:
        raise ParamError(
            f"the parameter is {declared.mode}, and a job can set MUTABLE ones only.",
            hint="Give the output another name, or declare the parameter with the mode MUTABLE.",
        )
    if declared.is_secret:
        raise ParamError("a secret went into this parameter; a job cannot set it.", hint="Give it another name.")
    return Param(declared.type, _merged(declared, value), declared.mode, ParamSource.OUTPUT_PARAMETER)


def _merged(declared: Param, value: Any) -> Any:
    """Maps are merged entry by entry, as in definitions; all else is replaced."""
    new = cast(value, declared.type)
    if declared.type in {ParamType.MAP, ParamType.STRING_MAP}:
        return _deeply(declared.value, new)
    return new


def _deeply(old: Any, new: Any) -> Any:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {**old, **{key: _deeply(old.get(key), item) for key, item in new.items()}}
