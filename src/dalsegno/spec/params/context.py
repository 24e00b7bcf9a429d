"""What goes into an evaluation, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dalsegno.model.params import Param
from dalsegno.spec.params.expressions import Expressions
from dalsegno.spec.params.facts import Lookup, RunFacts


@dataclass(frozen=True)
class Context:
    """What an evaluation works with; everything that is not in the definitions."""

    run: RunFacts
    now: datetime
    expressions: Expressions
    lookup: Lookup
    #: The value of a secret, by its name.
    secret: Callable[[str], str]


@dataclass
class Trace:
    """What went into a value."""

    is_secret: bool = False
    #: How many characters references have brought in.
    size: int = 0

    def seen(self, cause: Exception) -> Exception | None:
        """What may stand in a traceback: not a cause whose message has a secret in it."""
        return None if self.is_secret else cause


@dataclass(frozen=True)
class Evaluated:
    """The parameters of a step or a run, and what goes along with them."""

    params: dict[str, Param]
    #: Values by name for the references that were left in raw texts.
    references: dict[str, str]
    #: What must not be seen in any text.
    secrets: tuple[str, ...]
    #: Rules that were broken where that is let pass.
    warnings: tuple[str, ...] = ()
