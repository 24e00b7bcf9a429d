"""What the author of a declared table writes: ``incremental: {target: …, query: …}``."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.spark.statements import statements, tokens_of
from dalsegno.steps.contract import FilledText, Work
from dalsegno.steps.fields import Fields, SourceFile

BLOCK = "incremental"
#: The name of the view that stands for what a function returns.
RESULT = "dalsegno_result"
#: As they are written in a workflow.
STRATEGIES = {name.value.replace(" ", "_"): name for name in StrategyName}


class Policy(StrEnum):
    """What to do where only a full refresh is right."""

    #: Refuse it, once the table is there.
    STRICT = "strict"
    #: Refresh fully, and say why before it begins.
    PREFER = "prefer"
    #: Always refresh fully.
    FULL = "full"


class Dimension(StrEnum):
    """How a table is read that the query joins."""

    #: A change of it changes the rows that join with it.
    FOLLOW = "follow"
    #: As of a snapshot, which only a full refresh moves.
    PINNED = "pinned"


@dataclass(frozen=True)
class PythonFunction:
    """A function of DataFrames, one for each source, that returns a DataFrame."""

    file: SourceFile
    name: str
    sources: tuple[str, ...]

    def digest(self) -> str:
        """Of what it computes: the code of its file without white space and comments."""
        try:
            tree = ast.parse(self.file.text())
        except SyntaxError as error:
            raise UserError(f"{BLOCK}.file: {self.file.path.name} is not Python: {error}.") from error
        return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class DeclaredTable:
    """A target and the SELECT that says what it holds."""

    target: str
    #: One SELECT, parameters filled in.
    query: str
    keys: tuple[str, ...]
    #: Such as ``event_day`` or ``days(event_time)``; None: derived from the sources.
    partitioned_by: tuple[str, ...] | None
    #: None: the best that is right.
    strategy: StrategyName | None
    policy: Policy
    #: Functions of the user that depend on their arguments alone.
    deterministic: tuple[str, ...]
    consumer: str | None
    conf: Mapping[str, str]
    secrets: tuple[str, ...]
    #: Whether a companion table may keep the state of its aggregates.
    companion: bool = False
    #: What the author states about the data.
    facts: tuple[str, ...] = ()
    #: For all sources but the leading one, or for each by its name.
    dimensions: Dimension | Mapping[str, Dimension] = Dimension.FOLLOW
    #: So many runs are followed by an audit before they are committed.
    audit_first_runs: int = 0
    #: What says instead of a SELECT what the target holds.
    function: PythonFunction | None = None

    def digest(self, session: Mapping[str, str]) -> str:
        """What the table means: the SELECT, and settings that change its result."""
        settings = "\0".join(f"{name}={session[name]}" for name in sorted(session))
        return f"{self.select_digest}-{_hash(settings)[:8]}"

    @property
    def select_digest(self) -> str:
        """Of the SELECT without white space and comments."""
        return _hash("\0".join(token.text for token in tokens_of(self.query)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def declared_table(work: Work) -> DeclaredTable:
    """The step's parameters, understood; a ``UserError`` says what is not."""
    fields = Fields(work, BLOCK)
    function = _function(fields) if fields.one_of("query", "file") == "file" else None
    written = FilledText(f"SELECT * FROM {RESULT}") if function else work.filled(fields.required("query"))
    found = statements(written.text)
    if len(found) != 1:
        raise UserError(
            f"{BLOCK}.query holds {len(found)} statements, expected one SELECT.",
            hint="Put each SELECT into a step of its own.",
        )
    partitioned_by = fields.texts("partitioned_by") if "partitioned_by" in fields.values else None
    return DeclaredTable(
        target=fields.required("target"),
        query=found[0],
        keys=tuple(fields.texts("keys")),
        partitioned_by=None if partitioned_by is None else tuple(partitioned_by),
        strategy=_word(fields, "strategy", STRATEGIES),
        policy=Policy(fields.text("policy") or Policy.PREFER),
        companion=fields.flag("companion"),
        deterministic=tuple(fields.texts("deterministic")),
        facts=tuple(fields.texts("facts")),
        dimensions=dimensions_of(fields.values.get("dimensions")),
        consumer=fields.text("consumer"),
        conf={key: fields.plain(f"conf.{key}", value) for key, value in fields.mapping("conf").items()},
        secrets=written.secrets,
        audit_first_runs=fields.count("audit_first_runs") or 0,
        function=function,
    )


def _function(fields: Fields) -> PythonFunction:
    file, sources = fields.source("file"), fields.texts("sources")
    for name in ("sources", "keys"):
        if not fields.texts(name):
            raise UserError(
                f"{BLOCK}.{name} is needed: nobody can derive it from Python code.",
                hint=f"Name the {name} of the function.",
            )
    for name in ("facts", "dimensions", "deterministic"):
        if fields.values.get(name):
            raise UserError(f"{BLOCK}.{name} is for a SELECT, and the table is declared by a function.")
    if file.path.suffix != ".py":
        raise UserError(
            f"{BLOCK}.file is {file.path.name!r}, expected the name of a .py file.",
            hint=f"Write a SELECT as: query: $FILE{{{file.path.name}}}",
        )
    return PythonFunction(file, fields.text("function") or file.path.stem, tuple(sources))


def dimensions_of(given: object) -> Dimension | Mapping[str, Dimension]:
    """One word for all, or one for each table."""
    if isinstance(given, Mapping):
        return {name: _dimension(f"dimensions.{name}", word) for name, word in given.items()}
    return Dimension.FOLLOW if given is None else _dimension("dimensions", given)


def _dimension(field: str, word: object) -> Dimension:
    if word not in tuple(Dimension):
        raise UserError(f"{BLOCK}.{field} is {word!r}, expected {' or '.join(Dimension)}.")
    return Dimension(str(word))


def _word(fields: Fields, name: str, words: Mapping[str, StrategyName]) -> StrategyName | None:
    text = fields.text(name)
    if text is None:
        return None
    if text not in words:
        raise UserError(f"{BLOCK}.{name} is {text!r}, expected {', '.join(words)}.")
    return words[text]
