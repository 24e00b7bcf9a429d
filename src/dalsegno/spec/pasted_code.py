"""Values that would be pasted into code: ``command: [bash, -c, "… ${name}"]``.

A value with a quote or a semicolon in it becomes code there. A shell step's ``script`` has no such problem: values are
handed to it as variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dalsegno.model.params import ParamDefinition
from dalsegno.model.workflow import JobStep, Step
from dalsegno.spec.params.literals import all_references
from dalsegno.spec.reading.context import Reading

_BLOCKS = ("shell", "container", "kubernetes", "titus")
#: By the letters of options whose argument is code: the programs that take them.
_SHELLS = re.compile(r"(?:ba|da|z|k|mk|a|c|tc|fi|r?ba)?sh")
_LETTERS = (
    (_SHELLS, "c"),
    (re.compile(r"(?:python|pypy)[\d.]*"), "c"),
    (re.compile(r"(?:perl|ruby|lua|Rscript|R|julia|elixir|groovy|scala)[\d.]*"), "eE"),
    (re.compile(r"(?:node|nodejs|deno|bun)"), "ep"),
    (re.compile(r"php[\d.]*"), "rBRE"),
    (re.compile(r"(?:psql|duckdb|spark-sql|beeline|trino|clickhouse-client)"), "ceq"),
    (re.compile(r"(?:mysql|mariadb|hive)"), "e"),
)
_LONG_OPTIONS = ("--eval", "--print", "--command", "--execute", "--query")


def check(step: Step, reading: Reading) -> None:
    """Warn of each step whose command pastes a value into code."""
    if not isinstance(step, JobStep):
        return
    for block in _BLOCKS:
        definition = step.params.get(block)
        if definition is None or not isinstance(definition.value, dict):
            continue
        words = [*_words(definition.value.get("command")), *_words(definition.value.get("args"))]
        for name in list(dict.fromkeys(name for code in _code(words) for name in all_references(code))):
            reading.problems.add(
                f"the command of {step.id!r} pastes the value of {name!r} into code",
                reading.mark("param", step.id, block),
                f"{step.id}.{block}.command",
                _safe_way(words[0], name) if block != "shell" else "write it as shell.script, where it is a variable",
                warning=True,
            )


def _safe_way(program: str, name: str) -> str:
    if _SHELLS.fullmatch(program.rpartition("/")[2]):
        return f"""hand it over as an argument: [{program}, -c, '… "$1" …', {program}, '${{{name}}}']"""
    return f"hand '${{{name}}}' over as an argument of its own, or in env"


def _words(definition: ParamDefinition | object | None) -> list[str]:
    value = definition.value if isinstance(definition, ParamDefinition) else definition
    if isinstance(value, list | tuple):
        return [word for word in value if isinstance(word, str)]
    return [value] if isinstance(value, str) else []


def _code(words: Sequence[str]) -> Iterator[str]:
    """The words that a program takes for code."""
    letters = ""
    # A container's image may begin a program by itself, most likely a shell.
    if words and words[0].startswith("-"):
        letters = "c"
    for index, word in enumerate(words):
        program = word.rpartition("/")[2]
        if not word.startswith("-"):
            letters = next((known for pattern, known in _LETTERS if pattern.fullmatch(program)), letters)
            continue
        option, equals, value = word.partition("=")
        if option in _LONG_OPTIONS:
            yield value if equals else "".join(words[index + 1 : index + 2])
        elif letters and (found := re.match(rf"-[a-zA-Z]*?[{letters}]", word)) and not word.startswith("--"):
            # A cluster as -euxc takes the next word; what stands right behind the letter is code as well.
            yield word[found.end() :]
            yield _argument(words[index + 1 :])


def _argument(words: Sequence[str]) -> str:
    """The first word that is no option."""
    return next((word for word in words if not word.startswith("-")), "")
