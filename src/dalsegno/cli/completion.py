"""Names that a shell completes. Whatever goes wrong, a shell gets no names, and no message."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dalsegno.operations.known_names import KnownNames

#: Shells would act on other characters: zsh evaluates what it is given. And a dash would begin an option.
_HARMLESS = re.compile(r"(?!-)[\w./@+-]+")


def workflows(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "workflows", incomplete)


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """Workflows, each for its newest run; and runs."""
    return [*_stored(context, "workflows", incomplete), *_stored(context, "runs", incomplete)]


def steps(context: typer.Context, incomplete: str) -> list[str]:
    """Of the run or the workflow that was typed before."""
    given = context.params
    return _harmless(
        context, incomplete, lambda known: known.steps(workflow_id=given.get("workflow"), run=given.get("run"))
    )


def tables(context: typer.Context, incomplete: str) -> list[str]:
    return _harmless(context, incomplete, lambda known: known.tables(incomplete))


def captures(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "captures", incomplete, pending_only=False)


def pending_captures(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "captures", incomplete, pending_only=True)


def consumers(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "consumers", incomplete)


def templates(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "templates", incomplete)


def signals(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "signals", incomplete)


def tags(context: typer.Context, incomplete: str) -> list[str]:
    return _stored(context, "tags", incomplete)


def _stored(context: typer.Context, query: str, incomplete: str, **options: Any) -> list[str]:
    return _harmless(context, incomplete, lambda known: known.named(query, incomplete, **options))


def _harmless(context: typer.Context, incomplete: str, find: Callable[[KnownNames], list[str]]) -> list[str]:
    try:
        from dalsegno.operations.known_names import KnownNames  # noqa: PLC0415 - not for --help

        found = find(KnownNames(context.params.get("settings")))
    except Exception:  # noqa: BLE001 - nobody could read it: the shell is in the middle of a line
        return []
    return [name for name in found if name.startswith(incomplete) and _HARMLESS.fullmatch(name)]
