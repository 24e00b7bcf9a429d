"""What the author of a declared table writes: ``incremental: {target: …, query: …}``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dalsegno.errors import UserError
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.spark.statements import statements, tokens_of
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields

BLOCK = "incremental"
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

    def digest(self, session: Mapping[str, str]) -> str:
        """What the table means: the SELECT without white space and comments, and settings that change its result."""
        words = [token.text for token in tokens_of(self.query)]
        said = "\0".join([*words, *(f"{name}={session[name]}" for name in sorted(session))])
        return hashlib.sha256(said.encode()).hexdigest()[:32]


def declared_table(work: Work) -> DeclaredTable:
    """The step's parameters, understood; a ``UserError`` says what is not."""
    fields = Fields(work, BLOCK)
    written = work.filled(fields.required("query"))
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
        deterministic=tuple(fields.texts("deterministic")),
        consumer=fields.text("consumer"),
        conf={key: fields.plain(f"conf.{key}", value) for key, value in fields.mapping("conf").items()},
        secrets=written.secrets,
    )


def _word(fields: Fields, name: str, words: Mapping[str, StrategyName]) -> StrategyName | None:
    text = fields.text(name)
    if text is None:
        return None
    if text not in words:
        raise UserError(f"{BLOCK}.{name} is {text!r}, expected {', '.join(words)}.")
    return words[text]
