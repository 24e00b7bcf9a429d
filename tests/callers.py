"""Who calls, in tests."""

from __future__ import annotations

from dalsegno.model.callers import Caller, Role


def admin(name: str = "ada") -> Caller:
    return Caller.of(name, [Role.ADMIN])
