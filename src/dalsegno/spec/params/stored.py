"""Parameters as JSON: what is stored with a run, and what is shown.

A value that a secret went into is never written: its place holds asterisks. When parameters are read back such ones are
left out, and a ``Scope`` makes them anew from their definitions as soon as somebody uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalsegno.model.params import Param, ParamMode, Params, ParamSource, ParamType
from dalsegno.spec.params.secrets import MASK
from dalsegno.spec.params.values import cast


def param_to_json(param: Param) -> dict[str, Any]:
    """Plain data; ``is_secret`` is only there if it is true."""
    written: dict[str, Any] = {
        "type": param.type.value,
        "value": MASK if param.is_secret else param.value,
        "mode": param.mode.value,
        "source": param.source.value,
    }
    if param.is_secret:
        written["is_secret"] = True
    return written


def param_from_json(written: Mapping[str, Any]) -> Param | None:
    """The parameter; None if it is a secret, whose value was not written."""
    if written.get("is_secret"):
        return None
    type_ = ParamType(written["type"])
    value = cast(written["value"], type_)
    return Param(type_, value, ParamMode(written["mode"]), ParamSource(written["source"]))


def to_stored(params: Params) -> dict[str, Any]:
    """What may be stored and shown."""
    return {name: param_to_json(param) for name, param in params.items()}


def from_stored(stored: Mapping[str, Any]) -> dict[str, Param]:
    """What a ``Scope`` is to know; secret ones it makes anew."""
    read = ((name, param_from_json(written)) for name, written in stored.items())
    return {name: param for name, param in read if param is not None}
