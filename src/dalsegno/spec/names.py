"""How workflows, steps, parameters, tags and signals may be called: Maestro's rules."""

from __future__ import annotations

import re

from dalsegno.model.stored_text import fault_of_text

ID_LENGTH = 128
NAME_LENGTH = 256
TEXT_LENGTH = 16_384
#: Keys are indexed, and an entry of PostgreSQL's indexes holds 2,704 bytes.
KEY_LENGTH = 512

#: Between a step's id and a parameter's name, as in ``${step__param}``.
SEPARATOR = "__"
_PREFIX = "maestro_"
_SUFFIX = "_maestro"

_WORKFLOW_ID = re.compile(r"[_a-zA-Z0-9][.\-_a-zA-Z0-9]*")
_REFERENCE_ID = re.compile(r"[_a-zA-Z][.\-_a-zA-Z0-9]*")
_NAME = re.compile(r"[\w .,:@&='(){}$+\[\]\-/\\]+")

RESERVED_PARAMS = frozenset(
    {f(word) for word in ("maestro", "scheduler", "util", "params") for f in (str.lower, str.title, str.upper)}
    | {
        "AUTH_BLOB",
        "AUTH_DATA",
        "AUTH_ACTING_ON_BEHALF_OF_BLOB",
        "AUTH_TRIGGERING_ON_BEHALF_OF_BLOB",
        "AUTHORIZED_MANAGERS",
    }
)


def fault_of_workflow_id(text: str) -> str | None:
    """What is wrong with it, if anything; the beginning of a sentence is left to the caller."""
    if not _WORKFLOW_ID.fullmatch(text):
        return "an id is made of letters, digits, '.', '-' and '_', and begins with a letter, a digit or '_'"
    return _fault_of_ends(text, with_suffix=True) or _fault_of_length(text, ID_LENGTH)


def fault_of_step_id(text: str) -> str | None:
    return _fault_of_reference(text)


def fault_of_param_name(text: str) -> str | None:
    if text in RESERVED_PARAMS:
        return "this name is reserved"
    return _fault_of_reference(text)


def fault_of_name(text: str) -> str | None:
    """Of a tag or a signal."""
    if not text.strip() or not _NAME.fullmatch(text):
        return "a name is made of letters, digits, spaces and any of . , : @ & = ' ( ) { } $ + [ ] - / \\"
    return _fault_of_ends(text, with_suffix=True) or _fault_of_length(text, NAME_LENGTH)


def fault_of_key(text: str) -> str | None:
    """Of an idempotency key, which may hold anything."""
    if fault := fault_of_text(text):
        return f"it holds {fault}"
    return _fault_of_length(text, KEY_LENGTH)


def _fault_of_reference(text: str) -> str | None:
    if not _REFERENCE_ID.fullmatch(text):
        return "a name is made of letters, digits, '.', '-' and '_', and begins with a letter or '_'"
    if SEPARATOR in text:
        return f"{SEPARATOR!r} may not be in it: it stands between a step and its parameter"
    return _fault_of_ends(text, with_suffix=False) or _fault_of_length(text, ID_LENGTH)


def _fault_of_ends(text: str, *, with_suffix: bool) -> str | None:
    if text.lower().startswith(_PREFIX):
        return f"names that begin with {_PREFIX!r} are reserved"
    if with_suffix and text.lower().endswith(_SUFFIX):
        return f"names that end with {_SUFFIX!r} are reserved"
    return None


def _fault_of_length(text: str, limit: int) -> str | None:
    return f"it has {len(text)} characters; {limit} are the limit" if len(text) > limit else None
