"""Output parameters: what a job wrote, line by line, to the file that ``DALSEGNO_OUTPUT`` names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dalsegno.errors import UserError
from dalsegno.model.stored_text import fault_of_value

SIZE_LIMIT = 1 << 20
#: No parameter may be called so.
SIGNALS = "maestro_dynamic_output"
_SIGNAL_OUTPUTS = "signal_outputs"
_LINE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LONG = range(-(1 << 63), 1 << 63)
#: Shorter secrets are found in about any text.
_SECRET_LENGTH = 4


def read_outputs(file: Path, secrets: Iterable[str] = (), *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The values by name, or an error about the first line that cannot be understood."""
    try:
        with file.open("rb") as reader:
            content = reader.read(limit + 1)
    except FileNotFoundError:
        return {}
    if len(content) > limit:
        raise UserError(
            f"The job's output parameters take more than {limit:,} bytes.", hint="Write data to a table or a file."
        )
    outputs: dict[str, Any] = {}
    signals: list[Any] = []
    # Only a line feed ends a line: other breaks may be part of a value.
    for number, line in enumerate(content.decode(errors="replace").split("\n"), 1):
        if line.strip():
            outputs |= _parsed(line.strip(), number)
            signals += signals_in(outputs.pop(SIGNALS, None))
    if signals:
        outputs[SIGNALS] = {_SIGNAL_OUTPUTS: signals}
    for name, value in outputs.items():
        text = json.dumps(value, ensure_ascii=False)
        if any(
            len(secret) >= _SECRET_LENGTH and json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in secrets
        ):
            raise UserError(
                f"The output parameter {name} holds the value of a secret, and outputs are stored.",
                hint="Name the secret where it is needed instead of handing its value on.",
            )
    return outputs


def signals_in(output: Any) -> list[Any]:
    """Of the output by which a job announces signals, as Maestro has it: each with a name, and values beside it."""
    if output is None:
        return []
    found = output.get(_SIGNAL_OUTPUTS) if isinstance(output, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise UserError(
            f"The job announces signals by {output!r:.80}, expected a list of mappings.",
            hint=f'Such as {{"{SIGNALS}": {{"{_SIGNAL_OUTPUTS}": [{{"name": "plays/complete", "day": 20261116}}]}}}}',
        )
    return found


def _parsed(line: str, number: int) -> Mapping[str, Any]:
    if pair := _LINE.fullmatch(line):
        _refuse_unstorable(pair[1], pair[2], number)
        return {pair[1]: pair[2]}
    try:
        values = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise UserError(
            f"Line {number} of the job's output parameters is neither name=value nor a JSON object: {line[:80]!r}."
        )
    for name, value in values.items():
        _refuse_unstorable(name, value, number)
        if not _NAME.fullmatch(name) or not _is_value(value):
            raise UserError(f"Line {number} of the job's output parameters: {name!r} cannot be set to {value!r:.80}.")
    return values


def _refuse_unstorable(name: str, value: Any, number: int) -> None:
    if fault := fault_of_value(value):
        raise UserError(
            f"Line {number} of the job's output parameters: {name[:80]!r} holds {fault}, which cannot be stored.",
            hint="Write bytes as Base64, and larger numbers as text.",
        )


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _is_value(value: Any) -> bool:
    match value:
        case bool() | str() | float():
            return True
        case int():
            return value in _LONG
        case list():
            return all(map(_is_value, value))
        case dict():
            return all(map(_is_value, value.values()))
        case _:
            return False
