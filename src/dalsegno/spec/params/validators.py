"""Rules that a value must keep: ``@NotEmpty`` and its like, or an expression over ``param`` that must be true.

Maestro keeps such rules and never looks at them. Here they are run: when a workflow is pushed, for values that are
known then, and whenever a value is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from dalsegno.errors import ParamError, SelError
from dalsegno.model.params import Param
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.secrets import MASK
from dalsegno.spec.params.values import shown, text_of

_ANNOTATION = re.compile(r"@(\w+)\s*(?:\(([^()]*)\))?")
#: How templates of Maestro write ``@OneOf``.
_ENUM = "Maestro.enumCheck("
_NULL_ON_THE_RIGHT = re.compile(r"\bparam\s*([!=]=)\s*null\b")
_SIZE = re.compile(r"\bparam\s*\.\s*size\s*\(\s*\)")
_NUMBER = r"-?\d+(?:\.\d+)?"


def check(name: str, rule: str, param: Param, expressions: Expressions, now: datetime) -> None:
    """``ParamError`` unless the value keeps the rule."""
    if _is_annotation(rule):
        is_kept = _test(rule)(param.value)
    else:
        try:
            is_kept = expressions.evaluate(_in_sel(rule, param), {"param": param}, now=now, call=_no_functions)
        except SelError as broken:
            found = MASK if param.is_secret else f"{shown_of(param)}: {broken.message}"
            cause = None if param.is_secret else broken
            raise ParamError(f"Parameter '{name}': its validator \"{rule}\" cannot be applied to {found}") from cause
        if not isinstance(is_kept, bool):
            raise ParamError(
                f"Parameter '{name}': its validator \"{rule}\" must be true or false; it is {shown(is_kept)}."
            )
    if not is_kept:
        raise ParamError(f"Parameter '{name}' is {shown_of(param)}, which breaks its rule: {rule}")


def _in_sel(rule: str, param: Param) -> str:
    """The rule in words that SEL has: Maestro's own samples use some that it has not, as nobody ran them there.

    Lists have a length and no size, and only from the left can null be compared with a list or a map.
    """
    rule = _NULL_ON_THE_RIGHT.sub(r"null \1 param", rule)
    return _SIZE.sub("param.length", rule) if param.type.element is not None else rule


def check_rule(rule: str, expressions: Expressions) -> None:
    """``ParamError`` or ``SelError`` if nobody can understand the rule."""
    if _is_annotation(rule):
        _test(rule)
        return
    unknown = sorted(set(expressions.names_of(rule)) - {"param", "params"})
    if unknown:
        raise ParamError(f"A validator knows the value as 'param' and nothing else; \"{rule}\" uses {unknown[0]}.")


def lets_pass(path: str) -> bool:
    """Whether a broken rule is only told: entries of ``loop_params``, as samples of Maestro break their own rules."""
    return path.startswith("loop_params.")


def shown_of(param: Param) -> str:
    return MASK if param.is_secret else shown(param.value)


def _is_annotation(rule: str) -> bool:
    return rule.lstrip().startswith(("@", _ENUM))


def _test(rule: str) -> Callable[[Any], bool]:
    found = _ANNOTATION.fullmatch(rule.strip().replace(_ENUM, "@OneOf("))
    make = ANNOTATIONS.get(found[1].lower()) if found else None
    test = make((found[2] or "").strip()) if found and make else None
    if test is None:
        raise ParamError(
            f"'{rule}' is not a validator.",
            hint="There are @NotNull, @NotEmpty, @NotBlank, @Positive, @PositiveOrZero, @Negative, @NegativeOrZero, "
            '@Min(n), @Max(n), @Size(min=n, max=n), @OneOf("a", "b"), and expressions such as: param > 2',
        )
    return test


def _plain(test: Callable[[Any], bool]) -> Callable[[str], Callable[[Any], bool] | None]:
    return lambda argument: None if argument else test


def _bound(keeps: Callable[[float, float], bool]) -> Callable[[str], Callable[[Any], bool] | None]:
    def make(argument: str) -> Callable[[Any], bool] | None:
        if not re.fullmatch(_NUMBER, argument):
            return None
        bound = float(argument)
        return lambda value: _is_number(value) and keeps(value, bound)

    return make


def _size(argument: str) -> Callable[[Any], bool] | None:
    parts = dict(re.findall(r"(min|max)\s*=\s*(\d+)", argument))
    if not parts or re.sub(r"(min|max)\s*=\s*\d+|[\s,]", "", argument):
        return None
    least, most = int(parts.get("min", 0)), int(parts["max"]) if "max" in parts else None
    return lambda value: _is_sized(value) and least <= len(value) and (most is None or len(value) <= most)


def _one_of(argument: str) -> Callable[[Any], bool] | None:
    try:
        allowed = json.loads(f"[{argument}]")
    except ValueError:
        return None
    return (lambda value: value in allowed or text_of(value) in allowed) if allowed else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_sized(value: Any) -> bool:
    return isinstance(value, str | list | Mapping)


ANNOTATIONS: Mapping[str, Callable[[str], Callable[[Any], bool] | None]] = {
    "notnull": _plain(lambda value: value is not None),
    "notempty": _plain(lambda value: not _is_sized(value) or len(value) > 0),
    "notblank": _plain(lambda value: bool(str(value).strip())),
    "positive": _plain(lambda value: _is_number(value) and value > 0),
    "positiveorzero": _plain(lambda value: _is_number(value) and value >= 0),
    "negative": _plain(lambda value: _is_number(value) and value < 0),
    "negativeorzero": _plain(lambda value: _is_number(value) and value <= 0),
    "min": _bound(lambda value, bound: value >= bound),
    "max": _bound(lambda value, bound: value <= bound),
    "size": _size,
    "oneof": _one_of,
}


def _no_functions(name: str, arguments: object) -> Any:
    raise ParamError(f"A validator is about its value alone; it cannot ask params.{name}.")
