"""The parameters that an expression reads, for ordering them before anything is evaluated."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from dalsegno.sel import nodes
from dalsegno.sel.classes import PRESETS
from dalsegno.sel.parser import Program, parse


def names_of(expression: str) -> frozenset[str]:
    """Names that are read before anything is assigned to them, and those in ``params['name']``."""
    reader = _Reader(of_params=True)
    reader.visit(parse(expression).statements)
    return frozenset(reader.read)


def variables_of(program: Program) -> frozenset[str]:
    """Only the names that are read by themselves, which must be there: ``params['name']`` may find nothing."""
    reader = _Reader(of_params=False)
    reader.visit(program.statements)
    return frozenset(reader.read)


class _Reader:
    def __init__(self, *, of_params: bool) -> None:
        self._of_params = of_params
        self.read: set[str] = set()
        self._assigned: set[str] = set(PRESETS)

    def visit(self, node: Any) -> None:
        """In the order of evaluation."""
        match node:
            case nodes.Name(name=name):
                self._reads(name)
            case nodes.Assign(name=name, index=index, operator=operator, value=value):
                self.visit((index, value))
                if operator != "=" or index is not None:
                    self._reads(name)
                self._assigned.add(name)
            case nodes.Declare(variables=variables):
                for _, declared, first in variables:
                    self.visit(first)
                    self._assigned.add(declared)
            case nodes.Loop(begin=begin, condition=condition, update=update, body=body):
                self.visit((begin, condition, body, update))
            case nodes.Access(target=nodes.Name(name="params"), suffixes=(first, *_)):
                self._reads_param(first)
                self._children(node)
            case tuple():
                for item in node:
                    self.visit(item)
            case _ if is_dataclass(node):
                self._children(node)

    def _children(self, node: Any) -> None:
        for each in fields(node):
            self.visit(getattr(node, each.name))

    def _reads(self, name: str) -> None:
        if name not in self._assigned:
            self.read.add(name)

    def _reads_param(self, suffix: Any) -> None:
        if not self._of_params:
            return
        match suffix:
            case nodes.Index(index=nodes.Literal(value=str() as name)):
                self.read.add(name)
            case nodes.Call(name="get", arguments=(nodes.Literal(value=str() as name),)):
                self.read.add(name)
