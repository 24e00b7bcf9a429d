"""What the fields of a step type's block may hold, as ``step_types`` declares them: for checks and for runners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class Kind(Enum):
    """What a field holds, where that can be judged before a run."""

    ANY = auto()
    FLAG = auto()
    #: A number of seconds above 0.
    SECONDS = auto()
    #: A whole number above 0, also as a text.
    COUNT = auto()


@dataclass(frozen=True)
class BlockField:
    kind: Kind = Kind.ANY
    #: If it is one of some words, or a list of them.
    words: tuple[str, ...] = ()
    #: Whether upper and lower case matter.
    is_exact: bool = True
    #: If it holds fields itself.
    fields: Mapping[str, BlockField] = field(default_factory=dict)


Block = Mapping[str, BlockField]


def block(*names: str, **fields: BlockField) -> Block:
    """A block with fields that hold anything, and with others."""
    return {**dict.fromkeys(names, BlockField()), **fields}
