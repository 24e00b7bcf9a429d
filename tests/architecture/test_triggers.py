"""A kind of trigger is one package and one line in a table: nothing else names the kinds.

But for ``store.signal_subscriptions``: whoever announces a signal wakes its triggers in the same transaction.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from dalsegno.model.workflow import Trigger
from dalsegno.triggers import TRIGGERS
from dalsegno.triggers.cli import Lines
from dalsegno.triggers.engine import TriggerStarter, starters
from dalsegno.triggers.operations import TriggerViews, all_views
from dalsegno.triggers.spec import TriggerLanguage, languages, schema_of
from tests.architecture.test_imports import HEIGHT, SOURCE

PACKAGES = {kind: package.rpartition(".")[2] for kind, package in TRIGGERS.items()}


def modules_outside() -> list[Path]:
    inside = [SOURCE / "triggers" / package for package in PACKAGES.values()]
    found = [file for file in SOURCE.rglob("*.py") if not any(file.is_relative_to(folder) for folder in inside)]
    return [file for file in found if file != SOURCE / "triggers" / "__init__.py"]


def words(file: Path) -> Iterator[tuple[str, int]]:
    """All names, modules and strings in a file but comments and docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                yield word, node.lineno
            case ast.Constant(value=str(word)) if id(node) not in prose:
                yield word, node.lineno
            case ast.ClassDef(name=word) | ast.FunctionDef(name=word):
                yield word, node.lineno
            case ast.ImportFrom(module=str(word)):
                yield from ((each, node.lineno) for each in word.split("."))
                yield from ((alias.name, node.lineno) for alias in node.names)
            case ast.Import():
                yield from ((each, node.lineno) for alias in node.names for each in alias.name.split("."))


def test_no_other_module_names_a_kind() -> None:
    named = {
        kind: {f"{kind}_trigger", f"{kind}_triggers", f"{kind}_trigger_disabled", package}
        for kind, package in PACKAGES.items()
    }
    classes = {kind: f"{_definition(kind).__name__}" for kind in TRIGGERS}
    found = [
        f"{file.relative_to(SOURCE)}:{line}: {word}"
        for file in modules_outside()
        for word, line in words(file)
        for kind in TRIGGERS
        if word.strip("_").removeprefix("is_") in named[kind] or classes[kind] in word
    ]
    assert not found, "\n".join(found)


def test_no_other_module_asks_for_a_kind() -> None:
    """``trigger.kind == "time"`` and the like; each kind of word is common alone, so only comparisons are looked at."""
    found = []
    for file in modules_outside():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and any(
                "kind" in ast.unparse(each) for each in (node.left, *node.comparators)
            ):
                strings = {
                    each.value
                    for part in (node.left, *node.comparators)
                    for each in ast.walk(part)
                    if isinstance(each, ast.Constant)
                }
                if strings & TRIGGERS.keys():
                    found.append(f"{file.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "\n".join(found)


def test_kinds_do_not_know_each_other() -> None:
    for kind, package in PACKAGES.items():
        others = set(PACKAGES.values()) - {package}
        for file in (SOURCE / "triggers" / package).rglob("*.py"):
            known = {word for word, _ in words(file)} & others
            assert not known, f"{kind}: {file.relative_to(SOURCE)}: {known}"


def test_modules_are_named_after_layers() -> None:
    for package in ("", *PACKAGES.values()):
        for file in (SOURCE / "triggers" / package).iterdir():
            name = file.name.removesuffix(".py")
            assert name in {*HEIGHT, *PACKAGES.values(), "__init__", "__pycache__", "schema.json"}, file


@pytest.mark.parametrize("kind", TRIGGERS)
def test_a_kind_has_all_parts(kind: str) -> None:
    assert _definition(kind).kind == kind
    assert isinstance(languages()[kind], TriggerLanguage)
    assert isinstance(starters()[kind], TriggerStarter)
    assert isinstance(all_views()[kind], TriggerViews)
    lines: Lines = import_module(f"{TRIGGERS[kind]}.cli").lines
    assert callable(lines)
    assert {"definitions", "written", "stored"} == schema_of(kind).keys()


def _definition(kind: str) -> type[Trigger]:
    module = import_module(f"{TRIGGERS[kind]}.model")
    [found] = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Trigger) and each is not Trigger
    ]
    return found
