"""What became of a push."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.errors import Problem


@dataclass(frozen=True)
class Pushed:
    """What became of a push."""

    workflow_id: str
    version: int
    #: False: the newest version was the same already.
    is_new: bool
    is_active: bool
    #: What may be meant so, but is worth a look.
    warnings: tuple[Problem, ...] = ()
