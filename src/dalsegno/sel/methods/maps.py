"""Map, params, and the length of arrays."""

from __future__ import annotations

from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import BYTES_PER_CHARACTER, BYTES_PER_ENTRY
from dalsegno.sel.methods.registry import anything, call, field, method, text
from dalsegno.sel.texts import from_utf16
from dalsegno.sel.values import ELEMENT_OF, NULL, Box, Type, size_of, to_box


@method(Type.MAP, "size", on_null=True)
def _size(_: Context, entries: dict[str, Box] | None) -> int:
    return len(entries or {})


@method(Type.MAP, "get", text)
def map_entry(_: Context, entries: dict[str, Box], key: str) -> Box:
    return entries.get(key, NULL)


@method(Type.MAP, "getOrDefault", text, anything)
def _entry_or(_: Context, entries: dict[str, Box], key: str, default: Box) -> Box:
    return entries.get(key, default)


@method(Type.MAP, "containsKey", text, on_null=True)
def _contains(_: Context, entries: dict[str, Box] | None, key: str) -> bool:
    return key in (entries or {})


@method(Type.MAP, "put", text, anything)
def _put(context: Context, entries: dict[str, Box], key: str, value: Box) -> Box:
    """The box itself goes in, to stay; what was there before comes back."""
    before = entries.get(key, NULL)
    value.charged = None
    context.meter.hold(size_of(value))
    if key not in entries:
        context.meter.hold(BYTES_PER_ENTRY + len(key) * BYTES_PER_CHARACTER)
    entries[key] = value
    return before


def _length(items: Box) -> int:
    return len(items.value)


for _array in ELEMENT_OF:
    field(_array, "length")(_length)


def param(context: Context, name: str) -> Box:
    """A parameter by name; a copy each time."""
    given = context.params.get(from_utf16(name))
    return NULL if given is None else to_box(given, context.meter)


def call_params(context: Context, receiver: Box, name: str, arguments: list[Box]) -> Box:
    """Methods of params: two of our own, the rest is the caller's extension."""
    if name in {"get", "containsKey"}:
        return call(context, receiver, name, arguments)
    if context.extension is None:
        raise Fault(
            f"params.{name} is not known here",
            hint="There are params.get and params.containsKey; the getFrom functions need a run.",
        )
    words = tuple(from_utf16(text(argument)) for argument in arguments)
    try:
        return to_box(context.extension.call(name, words), context.meter)
    except LookupError as error:
        raise Fault(str(error.args[0]) if error.args else f"params.{name} found nothing") from None


@method(Type.PARAMS, "get", text, static=True)
def _param(context: Context, name: str) -> Box:
    return param(context, name)


@method(Type.PARAMS, "containsKey", text, static=True)
def _has_param(context: Context, name: str) -> bool:
    return from_utf16(name) in context.params
