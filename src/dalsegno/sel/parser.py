"""From tokens to a tree, by recursive descent: statements here, expressions in ``expressions``.

The grammar is Maestro's. In one place it is kinder: the last statement needs no semicolon. Depth is counted where the
grammar recurses, so no source can exhaust Python's stack.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.errors import SelError
from dalsegno.sel import nodes
from dalsegno.sel.expressions import PRIMITIVES, Expressions
from dalsegno.sel.lexer import tokens
from dalsegno.sel.limits import Limits


@dataclass(frozen=True)
class Program:
    """A parsed expression."""

    source: str
    statements: tuple[nodes.Statement, ...]


def parse(source: str, limits: Limits | None = None) -> Program:
    """The tree of an expression; ``SelError`` with line and column if it is not one."""
    limits = limits or Limits()
    try:
        return _Parser(source, tokens(source, limits), limits).program()
    except RecursionError:  # the caller's own stack was nearly full
        raise SelError("The expression is nested too deeply.", hint="Use variables for its parts.") from None


class _Parser(Expressions):
    #: How many loops there are around the current place.
    _loops = 0

    def program(self) -> Program:
        while self._take("import"):
            self._import()
        statements = []
        while not self._sees("end"):
            statements.append(self._statement())
        return Program(self._source, tuple(statements))

    def _import(self) -> None:
        self._take("static")
        self._expect("name")
        while self._take("."):
            if self._take("*"):
                break
            self._expect("name")
        self._end_of_statement()

    def _statement(self) -> nodes.Statement:  # noqa: PLR0911 - one return for each kind of statement
        with self._deeper():
            token = self._here
            if self._declares():
                declared = self._declaration()
                self._end_of_statement()
                return declared
            match token.kind:
                case "{":
                    return self._block()
                case "if":
                    return self._if()
                case "while":
                    return self._while()
                case "for":
                    return self._for()
                case "break" | "continue":
                    self._advance()
                    self._end_of_statement()
                    if not self._loops:
                        raise self._fault(f"{token.kind} stands outside of a loop", token)
                    return nodes.Leave(token.at, token.kind)
                case "return" | "throw":
                    self._advance()
                    value = self.expression()
                    self._end_of_statement()
                    kind = nodes.Return if token.kind == "return" else nodes.Throw
                    return kind(token.at, value)
            expression = self.expression()
            self._end_of_statement()
            return nodes.Evaluate(token.at, expression)

    def _block(self) -> nodes.Block:
        start = self._expect("{")
        statements = []
        while not self._take("}"):
            if self._sees("end"):
                raise self._fault("the block is not closed", start, hint="End it with }.")
            statements.append(self._statement())
        return nodes.Block(start.at, tuple(statements))

    def _if(self) -> nodes.If:
        start = self._here
        branches = []
        otherwise = None
        while self._take("if"):
            condition = self.in_parentheses()
            branches.append((condition, self._body()))
            if not self._take("else"):
                break
            if not self._sees("if"):
                otherwise = self._body()
                break
        return nodes.If(start.at, tuple(branches), otherwise)

    def _while(self) -> nodes.Loop:
        start = self._expect("while")
        condition = self.in_parentheses()
        return nodes.Loop(start.at, None, condition, None, self._loop_body())

    def _for(self) -> nodes.Loop:
        start = self._expect("for")
        self._expect("(")
        begin: nodes.Statement | None = None
        if self._declares():
            begin = self._declaration()
        elif not self._sees(";"):
            begin = nodes.Evaluate(self._here.at, self.expression())
        self._expect(";")
        condition = None if self._sees(";") else self.expression()
        self._expect(";")
        update = None if self._sees(")") else self.expression()
        self._expect(")")
        return nodes.Loop(start.at, begin, condition, update, self._loop_body())

    def _loop_body(self) -> nodes.Statement:
        self._loops += 1
        body = self._body()
        self._loops -= 1
        return body

    def _body(self) -> nodes.Statement:
        if self._declares():
            raise self._fault("a declaration cannot stand alone here", self._here, hint="Put it in braces.")
        return self._statement()

    def _declares(self) -> bool:
        """Whether a type and a name come next."""
        if self._here.kind not in {*PRIMITIVES, "name"}:
            return False
        after = 3 if self._ahead(1) == "[" and self._ahead(2) == "]" else 1
        return self._ahead(after) == "name"

    def _declaration(self) -> nodes.Declare:
        start = self._advance()
        is_array = self._take("[")
        if is_array:
            self._expect("]")
        variables = []
        while True:
            name = self._expect("name")
            value = self.expression() if self._take("=") else None
            variables.append((name.at, name.text, value))
            if not self._take(","):
                return nodes.Declare(start.at, start.text, is_array, tuple(variables))
