"""Why there is no table of some name: no such catalog or namespace, or a table that is called otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from dalsegno.errors import DalsegnoError, UnknownName
from dalsegno.iceberg.catalogs import Catalog
from dalsegno.model.tables import TableName
from dalsegno.settings import FILE_NAME, Settings


def explained(error: UnknownName, name: TableName, catalog: Catalog, settings: Settings) -> UnknownName:
    """The error with a reason and a hint, as far as the catalog knows."""
    try:
        tables = list(catalog.tables(name.namespace))
        namespaces = [] if tables else list(catalog.namespaces())
    except DalsegnoError:
        # That the table is missing is known; why, is not worth another error.
        return error
    first, *others = name.identifier
    if tables:
        where = ".".join((name.catalog, *name.namespace))
        near = _near(name.name, [each.name for each in tables], where)
        return UnknownName(error.message, hint=near) if near else error
    if any(each[:1] == (first,) for each in namespaces):
        return error
    if len(others) > 1:
        # A first part that names no catalog is taken for a namespace of the default one.
        known, written = sorted(settings.catalogs), ".".join(name.identifier)
        return UnknownName(
            f"There is no catalog {first!r}, which {written!r} begins with; the settings name {', '.join(known)}.",
            hint=f"Write {'.'.join((*(get_close_matches(first, known, n=1) or [name.catalog]), *others))!r}, or add "
            f"[catalogs.{first}] to {FILE_NAME}.",
        )
    shown = [".".join(each) for each in namespaces]
    close = get_close_matches(first, shown, n=1)
    return UnknownName(
        f"There is no namespace {first!r} in the catalog {name.catalog!r}.",
        hint=f"Did you mean {'.'.join((name.catalog, *close, *others))!r}?" if close else error.advice,
        actions=() if close else error.actions,
    )


def _near(name: str, known: Sequence[str], where: str) -> str | None:
    close = get_close_matches(name, known, n=1)
    return f"Did you mean '{where}.{close[0]}'?" if close else None
