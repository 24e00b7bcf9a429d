"""Who asks for a change, and what they may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """From the least to the most: each may do what those before it may."""

    #: Looks at everything.
    VIEWER = "viewer"
    #: Runs what is there: starts, ends and restarts runs, settles captures.
    OPERATOR = "operator"
    #: Changes what is there: workflows, job templates, checkpoints.
    AUTHOR = "author"
    #: Changes who may do what, and removes what is old.
    ADMIN = "admin"

    def includes(self, least: Role) -> bool:
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(least)


@dataclass(frozen=True)
class Caller:
    """A person or a program, as changes record it."""

    name: str
    roles: frozenset[Role]
    #: Which request of a client asked for it, if one did.
    request_id: str | None = None

    @classmethod
    def of(cls, name: str, roles: Iterable[Role], request_id: str | None = None) -> Caller:
        return cls(name, frozenset(roles), request_id)

    def may(self, least: Role) -> bool:
        return any(role.includes(least) for role in self.roles)
