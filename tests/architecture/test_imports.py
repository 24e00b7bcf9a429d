"""Imports point down only. ARCHITECTURE.md has the drawing; this keeps it true."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dalsegno"

#: From the bottom up. What stands in one line may not import each other.
LAYERS: tuple[frozenset[str], ...] = (
    # What user code imports stands alone. ``triggers`` itself is the table of kinds; its modules are in other layers.
    frozenset({"hints", "job", "triggers"}),
    frozenset({"errors"}),
    frozenset({"clock", "file_locks", "private_files", "storage_problems"}),
    frozenset({"settings", "model", "sel"}),
    frozenset({"plan", "spec"}),
    frozenset({"iceberg", "spark", "store"}),
    frozenset({"capture", "rewrite"}),
    frozenset({"steps"}),
    frozenset({"engine"}),
    frozenset({"audit"}),
    frozenset({"operations"}),
    frozenset({"server"}),
    frozenset({"cli"}),
)
HEIGHT = {package: height for height, layer in enumerate(LAYERS) for package in layer}


def layer_of(*parts: str) -> str:
    """The layer that a module is in: its package, or of a kind of trigger, the module that is named after a layer."""
    if parts[:1] == ("triggers",):
        return next((part for part in parts[1:] if part in HEIGHT), "triggers")
    return parts[0] if parts else ""


def layer_of_file(file: Path) -> str:
    return layer_of(*file.relative_to(SOURCE).with_suffix("").parts)


def imports() -> list[tuple[str, str, Path, int, str]]:
    """(importing layer, imported layer, file, line, module) of every import inside dalsegno."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        own = layer_of_file(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dalsegno":
                module = str(node.module)
                # What is imported from a package may be a module of its own.
                is_layered = module == "dalsegno" or module.startswith("dalsegno.triggers")
                names = [f"{module}.{alias.name}" for alias in node.names] if is_layered else [module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name.split(".")[0] == "dalsegno"]
            else:
                continue
            found += [(own, layer_of(*name.split(".")[1:]), file, node.lineno, name) for name in names]
    return found


def test_every_package_has_its_place() -> None:
    packages = {file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in SOURCE.rglob("*.py")}
    assert packages - {"__init__"} == set(HEIGHT)


def test_imports_point_down() -> None:
    upward = [
        f"{file.relative_to(SOURCE)}:{line}: {own} imports {imported}"
        for own, imported, file, line, _ in imports()
        if own not in {imported, "__init__"} and imported and HEIGHT[imported] >= HEIGHT[own]
    ]
    assert not upward, "\n".join(upward)


#: What the edges may know beside themselves: the front door with its results, and what stands below everything.
EDGES = {"cli": {"cli", "server"}, "server": {"server"}}
SHARED = {"operations", "model", "errors", "hints", "settings", "clock", "private_files", "triggers", ""}
#: What they import in spite of that, and why.
EXCEPTIONS = {
    ("cli/output.py", "dalsegno.steps.supervisor"): "the process is hidden from jobs before anything else is loaded",
    ("cli/log_lines.py", "dalsegno.engine.log_context"): "the log of a process is set up before it works",
    ("cli/log_lines.py", "dalsegno.steps.secret_values"): "and must not show secrets",
    ("cli/spark.py", "dalsegno.spark.server"): "starts a process of this machine: no store, no caller",
    ("cli/spark.py", "dalsegno.steps.spark.sessions"): "as above",
    ("cli/workflows.py", "dalsegno.spec"): "validate, format and schema work on files alone: no store, no caller",
    ("cli/evaluating.py", "dalsegno.sel"): "eval works on an expression alone",
    ("cli/text.py", "dalsegno.iceberg.values"): "how a partition is written",
    ("cli/lookups.py", "dalsegno.steps.spark.rows"): "how a cell is written",
}


def test_the_edges_call_operations_and_nothing_else() -> None:
    used: set[tuple[str, str]] = set()
    wrong = []
    for own, imported, file, line, module in imports():
        if own not in EDGES or imported in SHARED | EDGES[own]:
            continue
        name = str(file.relative_to(SOURCE))
        allowed = {key for key in EXCEPTIONS if key[0] == name and f"{module}.".startswith(f"{key[1]}.")}
        used |= allowed
        if not allowed:
            wrong.append(f"{name}:{line}: {module}")
    assert not wrong, "\n".join(wrong)
    assert used == set(EXCEPTIONS), "an exception that nobody needs"


PURE = frozenset(
    {"dalsegno", "__future__", "collections", "dataclasses", "datetime", "enum", "typing", "itertools"}
) | {
    *("hashlib", "json", "re"),
}
#: Times are found in lists of them, and spreading starts takes a digest.
DECIDING = PURE | {"bisect", "math"}
#: Languages have texts, numbers and zones (from tzdata); expressions a stopwatch for their limit on time, too.
LANGUAGE = PURE | {
    "abc",
    "contextlib",
    "decimal",
    "difflib",
    "functools",
    "importlib",
    "json",
    "math",
    "random",
    "re",
    "time",
}
LANGUAGE |= {"base64", "bisect", "shlex", "string", "textwrap", "unicodedata", "urllib", "uuid", "yaml", "zoneinfo"}


@pytest.mark.parametrize(
    ("package", "allowed"), [("model", PURE), ("plan", DECIDING), ("spec", LANGUAGE), ("sel", LANGUAGE)]
)
def test_decisions_see_no_io(package: str, allowed: frozenset[str]) -> None:
    """What decides must not be able to look: no database, no table, no file, no clock."""
    for file in (file for file in SOURCE.rglob("*.py") if layer_of_file(file) == package):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] in allowed, f"{file}:{node.lineno}"
                assert "utc_now" not in {alias.name for alias in node.names}, f"{file}:{node.lineno}"
            elif isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, f"{file}:{node.lineno}"


#: Packages in which some modules still import each other: what is left to untangle.
KNOWN_CYCLES = frozenset({"dalsegno.engine", "dalsegno.store"})


@pytest.mark.parametrize("package", sorted({file.parent for file in SOURCE.rglob("*.py")} - {SOURCE}), ids=str)
def test_modules_of_a_package_do_not_import_each_other(package: Path) -> None:
    """Not even for their types: such modules can only be read together."""
    name = ".".join(["dalsegno", *package.relative_to(SOURCE).parts])
    modules = {f"{name}.{file.stem}": file for file in package.glob("*.py") if file.stem != "__init__"}
    graph = {module: _imported(file) & modules.keys() for module, file in modules.items()}
    cycles = sorted(module for module in graph if module in _reachable(graph, module))
    if name in KNOWN_CYCLES:
        assert cycles, f"{name} has none any more: take it off the list"
        return
    assert not cycles, f"these import each other: {', '.join(cycles)}"


def _imported(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        if (module := waiting.pop()) not in found:
            found.add(module)
            waiting += graph[module]
    return found
