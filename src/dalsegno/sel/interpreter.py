"""Walks the tree. Nothing is looked up in Python: names are variables, parameters or the classes of our own tables."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from dalsegno.errors import SelError
from dalsegno.sel import nodes
from dalsegno.sel.classes import PRESETS, class_named, construct, preset
from dalsegno.sel.context import Context
from dalsegno.sel.faults import Fault
from dalsegno.sel.limits import BYTES_PER_ELEMENT
from dalsegno.sel.methods.maps import call_params, map_entry, param
from dalsegno.sel.methods.registry import call, field_of, integer, text
from dalsegno.sel.operators import assign, binary, mismatch, unary
from dalsegno.sel.parser import Program
from dalsegno.sel.values import ARRAY_OF, ELEMENT_OF, NULL, VOID, Box, Type, charge, empty, size_of, to_box


class _After(Enum):
    """How a statement ended."""

    NOTHING = auto()
    VALUE = auto()
    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


class Interpreter:
    """Of one evaluation."""

    def __init__(self, program: Program, context: Context) -> None:
        self._program = program
        self._context = context
        self._meter = context.meter
        self._variables: dict[str, Box] = {}
        self._result = VOID
        self._evaluators: dict[type[Any], Callable[[Any], Box]] = {
            nodes.Literal: self._literal,
            nodes.Name: lambda node: self._named(node.name),
            nodes.Assign: self._assign,
            nodes.Choice: self._choice,
            nodes.Logic: self._logic,
            nodes.Operation: self._operation,
            nodes.Unary: self._unary,
            nodes.Access: self._access,
            nodes.New: self._new,
            nodes.NewArray: self._new_array,
            nodes.ArrayOf: self._array_of,
        }
        self._executors: dict[type[Any], Callable[[Any], _After]] = {
            nodes.Evaluate: self._evaluate_statement,
            nodes.Declare: self._declare,
            nodes.If: self._if,
            nodes.Loop: self._loop,
            nodes.Block: lambda node: self._all(node.statements),
            nodes.Leave: lambda node: _After.BREAK if node.word == "break" else _After.CONTINUE,
            nodes.Return: self._return,
            nodes.Throw: self._throw,
        }

    def run(self) -> Box:
        """The value of ``return``, or of the last statement; VOID if that has none."""
        after = self._all(self._program.statements)
        return VOID if after is _After.NOTHING else self._result

    def fault(self, fault: Fault, node: Any) -> SelError:
        return fault.at(self._program.source, node.at)

    # -- statements ---------------------------------------------------------------------------------------------

    def _all(self, statements: tuple[nodes.Statement, ...]) -> _After:
        after = _After.NOTHING
        for statement in statements:
            after = self._execute(statement)
            if after is not _After.VALUE and after is not _After.NOTHING:
                break
        return after

    def _execute(self, statement: nodes.Statement) -> _After:
        try:
            self._meter.step()
        except Fault as fault:
            raise self.fault(fault, statement) from None
        self._meter.next_statement()
        return self._executors[type(statement)](statement)

    def _evaluate_statement(self, statement: nodes.Evaluate) -> _After:
        self._result = self._evaluate(statement.expression)
        return _After.VALUE

    def _return(self, statement: nodes.Return) -> _After:
        self._result = self._evaluate(statement.value)
        return _After.RETURN

    def _throw(self, statement: nodes.Throw) -> _After:
        thrown = self._evaluate(statement.value)
        if thrown.type is not Type.STRING:
            raise self.fault(Fault(f"throw takes a string, not {thrown.type}"), statement)
        raise self.fault(Fault(f"the expression throws: {thrown.value}"), statement)

    def _declare(self, statement: nodes.Declare) -> _After:
        try:
            type_ = class_named(statement.class_name)
            if statement.is_array:
                type_ = _array_of(type_)
        except Fault as fault:
            raise self.fault(fault, statement) from None
        for at, name, first in statement.variables:
            value = empty(type_) if first is None else self._evaluate(first)
            if value.type is not type_:
                raise mismatch(type_, value).at(self._program.source, at)
            try:
                self._variables[name] = self._declared(self._variables.get(name), value)
            except Fault as fault:
                raise fault.at(self._program.source, at) from None
        return _After.NOTHING

    def _declared(self, before: Box | None, value: Box) -> Box:
        """A new variable, which may take the name of another."""
        if before is not None:
            charge(before, 0, self._meter)
        variable = Box(value.type, value.value)
        charge(variable, size_of(value), self._meter)
        return variable

    def _if(self, statement: nodes.If) -> _After:
        after = _After.NOTHING
        for condition, then in statement.branches:
            if self._holds(condition):
                after = self._execute(then)
                break
        else:
            if statement.otherwise is not None:
                after = self._execute(statement.otherwise)
        return _After.NOTHING if after is _After.VALUE else after

    def _loop(self, statement: nodes.Loop) -> _After:
        if statement.begin is not None:
            self._execute(statement.begin)
        turns = 0
        while statement.condition is None or self._holds(statement.condition):
            turns += 1
            if turns > self._meter.limits.turns:
                fault = Fault(f"the loop takes more than {self._meter.limits.turns:,} turns", hint="Does it ever end?")
                raise self.fault(fault, statement)
            after = self._execute(statement.body)
            if after is _After.RETURN:
                return after
            if after is _After.BREAK:
                break
            if statement.update is not None:
                self._evaluate(statement.update)
        return _After.NOTHING

    def _holds(self, condition: nodes.Expression) -> bool:
        value = self._evaluate(condition)
        if value.type is not Type.BOOLEAN:
            hint = "A name that was given no value is NULL: look at its spelling." if value.type is Type.NULL else None
            raise self.fault(Fault(f"a condition must be BOOLEAN, not {value.type}", hint=hint), condition)
        return bool(value.value)

    # -- expressions --------------------------------------------------------------------------------------------

    def _evaluate(self, node: nodes.Expression) -> Box:
        try:
            self._meter.step()
            return self._evaluators[type(node)](node)
        except Fault as fault:
            raise self.fault(fault, node) from None

    def _literal(self, node: nodes.Literal) -> Box:
        return NULL if node.type is Type.NULL else Box(node.type, node.value)

    def _named(self, name: str) -> Box:
        """A variable, a class, or a parameter, which becomes a variable; null if it is none of them."""
        found = self._variables.get(name) or self._first_seen(name)
        return NULL if found is None else found

    def _first_seen(self, name: str) -> Box | None:
        if name in PRESETS:
            found = preset(name)
        elif name in self._context.params:
            found = to_box(self._context.params[name], self._meter)
        else:
            return None
        self._variables[name] = found
        return found

    def _assign(self, node: nodes.Assign) -> Box:
        index = None if node.index is None else self._evaluate(node.index)
        value = self._evaluate(node.value)
        if index is not None:
            target = _element(self._named(node.name), index)
        else:
            target = self._variables.get(node.name) or self._first_seen(node.name) or self._new_variable(node, value)
        assign(node.operator, target, value, self._meter)
        return target

    def _new_variable(self, node: nodes.Assign, value: Box) -> Box:
        if node.operator != "=":
            raise Fault(f"{node.name} has no value yet", hint=f"Write {node.name} = ... first.")
        if value.type is Type.NULL:
            raise Fault(f"null cannot be assigned to {node.name}", hint="A name that was given no value is null, too.")
        made = self._variables[node.name] = empty(value.type)
        return made

    def _choice(self, node: nodes.Choice) -> Box:
        for condition, then in node.branches:
            if self._holds(condition):
                return self._evaluate(then)
        return self._evaluate(node.otherwise)

    def _logic(self, node: nodes.Logic) -> Box:
        """From left to right, and no further than needed."""
        decisive = node.operator == "||"
        for operand in node.operands:
            value = self._evaluate(operand)
            if value.type is not Type.BOOLEAN:
                raise self.fault(Fault(f"{node.operator} needs BOOLEAN, not {value.type}"), operand)
            if value.value is decisive:
                return Box(Type.BOOLEAN, decisive)
        return Box(Type.BOOLEAN, not decisive)

    def _operation(self, node: nodes.Operation) -> Box:
        value = self._evaluate(node.first)
        for operator, at, operand in node.rest:
            right = self._evaluate(operand)
            try:
                self._meter.step()
                value = binary(operator, value, right, self._meter)
            except Fault as fault:
                raise fault.at(self._program.source, at) from None
        return value

    def _unary(self, node: nodes.Unary) -> Box:
        value = self._evaluate(node.operand)
        for operator in node.operators:
            self._meter.step()
            value = unary(operator, value)
        return value

    def _access(self, node: nodes.Access) -> Box:
        value = self._evaluate(node.target)
        for suffix in node.suffixes:
            try:
                self._meter.step()
                value = self._suffixed(value, suffix)
            except Fault as fault:
                raise self.fault(fault, suffix) from None
        return value

    def _suffixed(self, value: Box, suffix: nodes.Field | nodes.Call | nodes.Index) -> Box:
        match suffix:
            case nodes.Field(name=name):
                return param(self._context, name) if value.type is Type.PARAMS else field_of(value, name)
            case nodes.Call(name=name, arguments=arguments):
                given = [self._evaluate(argument) for argument in arguments]
                invoke = call_params if value.type is Type.PARAMS else call
                return invoke(self._context, value, name, given)
            case nodes.Index(index=expression):
                index = self._evaluate(expression)
                if value.type is Type.PARAMS:
                    return param(self._context, text(index))
                if value.type is Type.MAP and value.value is not None:
                    return map_entry(self._context, value.value, text(index))
                return _element(value, index)

    def _new(self, node: nodes.New) -> Box:
        type_ = class_named(node.class_name)
        return construct(self._context, type_, [self._evaluate(argument) for argument in node.arguments])

    def _new_array(self, node: nodes.NewArray) -> Box:
        type_ = _array_of(class_named(node.class_name))
        length = integer(self._evaluate(node.length))
        if length < 0:
            raise Fault(f"an array cannot have {length} elements")
        self._announce(length)
        return Box(type_, [empty(ELEMENT_OF[type_]) for _ in range(length)])

    def _array_of(self, node: nodes.ArrayOf) -> Box:
        type_ = _array_of(class_named(node.class_name))
        self._announce(len(node.items))
        items = []
        for item in node.items:
            value = self._evaluate(item)
            if value.type is not ELEMENT_OF[type_]:
                raise self.fault(mismatch(ELEMENT_OF[type_], value), item)
            items.append(Box(value.type, value.value))
        return Box(type_, items)

    def _announce(self, elements: int) -> None:
        if elements > self._meter.limits.elements:
            raise Fault(f"an array of {elements:,} elements has more than {self._meter.limits.elements:,}")
        self._meter.step(elements)
        self._meter.make(elements * BYTES_PER_ELEMENT)


def _array_of(element: Type) -> Type:
    if element not in ARRAY_OF:
        raise Fault(f"there are no arrays of {element}", hint="There are arrays of String, long, double and boolean.")
    return ARRAY_OF[element]


def _element(items: Box, index: Box) -> Box:
    if items.type not in ELEMENT_OF:
        hint = "A name that was given no value is NULL: look at its spelling." if items.type is Type.NULL else None
        raise Fault(f"{items.type} has no elements", hint=hint)
    at = integer(index)
    if not 0 <= at < len(items.value):
        raise Fault(f"the index {at} is outside of the array, which has {len(items.value)} elements")
    found: Box = items.value[at]
    return found
