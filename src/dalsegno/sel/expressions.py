"""Expressions: the grammar's lower half."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dalsegno.sel import nodes
from dalsegno.sel.cursor import Cursor
from dalsegno.sel.lexer import Token
from dalsegno.sel.values import Type

PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double"})
_ASSIGNMENTS = frozenset({"=", "*=", "/=", "%=", "+=", "-="})
#: From the tightest.
_RANKS = (
    frozenset("*/%"),
    frozenset("+-"),
    frozenset({"<", ">", "<=", ">="}),
    frozenset({"==", "!="}),
    frozenset({"&&"}),
    frozenset({"||"}),
)
_OPERATORS = frozenset().union(*_RANKS)
_LARGEST = 2**63 - 1


class Expressions(Cursor):
    def expression(self) -> nodes.Expression:
        with self._deeper():
            branches: list[tuple[nodes.Expression, nodes.Expression]] = []
            start = self._here
            while True:
                first = self._here
                found = self._operation()
                if first.kind == "name" and self._here.kind in _ASSIGNMENTS:
                    found = self._assignment(found)
                elif self._take("?"):
                    then = self.expression()
                    self._expect(":", hint="A choice is written condition ? one : other.")
                    branches.append((found, then))
                    continue
                return nodes.Choice(start.at, tuple(branches), found) if branches else found

    def _assignment(self, target: nodes.Expression) -> nodes.Expression:
        operator = self._here
        index: nodes.Expression | None = None
        match target:
            case nodes.Name(name=name):
                pass
            case nodes.Access(target=nodes.Name(name=name), suffixes=(nodes.Index() as only,)):
                index = only.index
            case _:
                raise self._fault(
                    f"{operator.text} has no variable on its left", operator, hint="To compare, write ==."
                )
        self._advance()
        return nodes.Assign(target.at, name, index, operator.text, self.expression())

    def _operation(self) -> nodes.Expression:
        """Operands and operators in a row, then grouped rank by rank."""
        operands = [self._unary()]
        operators: list[Token] = []
        while self._here.kind in _OPERATORS:
            operators.append(self._advance())
            operands.append(self._unary())
        for rank in _RANKS:
            if any(operator.kind in rank for operator in operators):
                operands, operators = _grouped(operands, operators, rank)
        return operands[0]

    def _unary(self) -> nodes.Expression:
        start = self._here
        operators = []
        while self._here.kind in {"-", "+", "!"}:
            operators.append(self._advance())
        if operators and operators[-1].kind == "-" and self._here.text.rstrip("lL") == str(_LARGEST + 1):
            # The smallest long has no positive counterpart, so it is read together with its sign.
            self._advance()
            operand: nodes.Expression = nodes.Literal(operators.pop().at, Type.LONG, -_LARGEST - 1)
        else:
            operand = self._primary()
        if not operators:
            return operand
        return nodes.Unary(start.at, tuple(operator.kind for operator in reversed(operators)), operand)

    def _primary(self) -> nodes.Expression:
        target = self._prefix()
        suffixes: list[nodes.Field | nodes.Call | nodes.Index] = []
        while True:
            token = self._here
            if self._take("["):
                suffixes.append(nodes.Index(token.at, self.expression()))
                self._expect("]")
            elif self._take("."):
                name = self._expect("name")
                if self._sees("("):
                    suffixes.append(nodes.Call(name.at, name.text, self._arguments()))
                else:
                    suffixes.append(nodes.Field(name.at, name.text))
            else:
                return nodes.Access(target.at, target, tuple(suffixes)) if suffixes else target

    def _prefix(self) -> nodes.Expression:  # noqa: PLR0911 - one return for each kind of prefix
        token = self._here
        match token.kind:
            case "(":
                return self.in_parentheses()
            case "new":
                return self._allocation()
            case "name":
                self._advance()
                if self._sees("("):
                    raise self._fault(
                        f"{token.text}(...) is not a function", token, hint="Methods belong to a value or a class."
                    )
                return nodes.Name(token.at, token.text)
            case "integer":
                self._advance()
                digits = token.text.rstrip("lL").lstrip("0") or "0"
                if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
                    raise self._fault(f"{token.text:.40} does not fit into 64 bits", token)
                return nodes.Literal(token.at, Type.LONG, int(digits))
            case "float":
                self._advance()
                return nodes.Literal(token.at, Type.DOUBLE, float(token.text.rstrip("fFdD")))
            case "string":
                self._advance()
                return nodes.Literal(token.at, Type.STRING, token.text)
            case "true" | "false":
                self._advance()
                return nodes.Literal(token.at, Type.BOOLEAN, token.kind == "true")
            case "null":
                self._advance()
                return nodes.Literal(token.at, Type.NULL, None)
        raise self._unexpected("an expression")

    def in_parentheses(self) -> nodes.Expression:
        self._expect("(")
        expression = self.expression()
        self._expect(")")
        return expression

    def _allocation(self) -> nodes.Expression:
        start = self._expect("new")
        token = self._advance()
        if token.kind not in {*PRIMITIVES, "name"}:
            raise self._fault(f"new needs a class, not {token.text}", token)
        if not self._sees("["):
            if token.kind in PRIMITIVES:
                raise self._unexpected("[")
            return nodes.New(start.at, token.text, self._arguments())
        self._expect("[")
        if not self._take("]"):
            length = self.expression()
            self._expect("]")
            return nodes.NewArray(start.at, token.text, length)
        self._expect("{", hint="Say how long it is, new long[3], or what is in it, new long[]{1, 2, 3}.")
        return nodes.ArrayOf(start.at, token.text, self._listed("}", may_end_with_comma=True))

    def _arguments(self) -> tuple[nodes.Expression, ...]:
        self._expect("(")
        return self._listed(")")

    def _listed(self, closing: str, *, may_end_with_comma: bool = False) -> tuple[nodes.Expression, ...]:
        if may_end_with_comma and self._take(","):
            self._expect(closing)
            return ()
        if self._take(closing):
            return ()
        items = [self.expression()]
        while self._take(","):
            if may_end_with_comma and self._sees(closing):
                break
            items.append(self.expression())
        self._expect(closing)
        return tuple(items)


def _grouped(
    operands: list[nodes.Expression], operators: list[Token], rank: frozenset[str]
) -> tuple[list[nodes.Expression], list[Token]]:
    """The same row, with each run of operators of this rank made into one operand."""
    make: Callable[[list[Any], list[Token]], nodes.Expression] = _logic if rank <= {"&&", "||"} else _arithmetic
    left: list[nodes.Expression] = []
    kept: list[Token] = []
    run: list[nodes.Expression] = [operands[0]]
    run_operators: list[Token] = []
    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator.kind in rank:
            run.append(operand)
            run_operators.append(operator)
            continue
        left.append(make(run, run_operators) if run_operators else run[0])
        kept.append(operator)
        run, run_operators = [operand], []
    left.append(make(run, run_operators) if run_operators else run[0])
    return left, kept


def _logic(operands: list[nodes.Expression], operators: list[Token]) -> nodes.Expression:
    return nodes.Logic(operators[0].at, operators[0].kind, tuple(operands))


def _arithmetic(operands: list[nodes.Expression], operators: list[Token]) -> nodes.Expression:
    rest = tuple(
        (operator.kind, operator.at, operand) for operator, operand in zip(operators, operands[1:], strict=True)
    )
    return nodes.Operation(operands[0].at, operands[0], rest)
