"""What an expression is made of, after parsing. ``at`` is the place in the source, in characters from 0.

What is written as a row is kept as a row: operators of one rank, calls after calls, ``else if`` after ``else if``. So
the tree is only as deep as parentheses and blocks are nested, which the parser limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from dalsegno.sel.values import Type


@dataclass(frozen=True, slots=True)
class Literal:
    at: int
    type: Type
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Assign:
    """``name = value``, ``name[index] += value``."""

    at: int
    name: str
    index: Expression | None
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """``a ? b : c ? d : e``."""

    at: int
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Logic:
    """Operands joined by && or by ||."""

    at: int
    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """Operators of one rank, from left to right: each with its place and right operand."""

    at: int
    first: Expression
    rest: tuple[tuple[str, int, Expression], ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """Signs and negations, the innermost first."""

    at: int
    operators: tuple[str, ...]
    operand: Expression


@dataclass(frozen=True, slots=True)
class Field:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    at: int
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Index:
    at: int
    index: Expression


@dataclass(frozen=True, slots=True)
class Access:
    """Fields, calls and indexes, one after the other."""

    at: int
    target: Expression
    suffixes: tuple[Field | Call | Index, ...]


@dataclass(frozen=True, slots=True)
class New:
    at: int
    class_name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NewArray:
    at: int
    class_name: str
    length: Expression


@dataclass(frozen=True, slots=True)
class ArrayOf:
    at: int
    class_name: str
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Evaluate:
    """An expression as a statement."""

    at: int
    expression: Expression


@dataclass(frozen=True, slots=True)
class Declare:
    at: int
    class_name: str
    is_array: bool
    #: Place, name and first value of each variable.
    variables: tuple[tuple[int, str, Expression | None], ...]


@dataclass(frozen=True, slots=True)
class If:
    at: int
    branches: tuple[tuple[Expression, Statement], ...]
    otherwise: Statement | None


@dataclass(frozen=True, slots=True)
class Loop:
    """``for``; a ``while`` has neither a beginning nor an update."""

    at: int
    begin: Statement | None
    condition: Expression | None
    update: Expression | None
    body: Statement


@dataclass(frozen=True, slots=True)
class Block:
    at: int
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """``break`` or ``continue``."""

    at: int
    word: str


@dataclass(frozen=True, slots=True)
class Return:
    at: int
    value: Expression


@dataclass(frozen=True, slots=True)
class Throw:
    at: int
    value: Expression


Expression: TypeAlias = Literal | Name | Assign | Choice | Logic | Operation | Unary | Access | New | NewArray | ArrayOf
Statement: TypeAlias = Evaluate | Declare | If | Loop | Block | Leave | Return | Throw
