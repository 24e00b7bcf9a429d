"""The one table that an atomic step writes to, found before anything is executed; otherwise a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing

from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.settings import Settings
from dalsegno.spark import atomic_scripts
from dalsegno.spark.connect import Session
from dalsegno.spark.forms import form_of
from dalsegno.steps.spark.targets import Names, Targets, names_of, redefines


def target_of(
    statements: Sequence[str], conf: Iterable[str], settings: Settings, opened: Callable[[], Session]
) -> TableName:
    """The target of all statements that write; a ``UserError`` if an atomic step cannot have them.

    ``opened`` makes a session like the one that the statements will have.
    """
    if keys := [key for key in conf if key.lower().startswith(atomic_scripts.SETTINGS)]:
        raise _refused(f"it sets {keys[0]}, which directs an atomic step to its branch")
    for number, text in enumerate(statements, start=1):
        form = form_of(text)
        if because := atomic_scripts.refusal(text, form):
            raise _refused(f"statement {number} ({form.name}): {because}")
    found = _targets(statements, settings, opened)
    if len(found) != 1:
        written = " and ".join(f"{name} (statement {number})" for name, number in found.items())
        raise _refused(f"it writes to {written or 'no table'}, expected one table")
    [name] = found
    settings_made = [*conf, *(form_of(text).setting for text in statements)]
    if keys := [key for key in settings_made if redefines(name.catalog, key)]:
        raise _refused(f"it sets {keys[0]}, so that {name.catalog} may be another catalog than the settings name")
    for number, text in enumerate(statements, start=1):
        if because := atomic_scripts.way_around(text, (name.catalog, *name.identifier)):
            raise _refused(f"statement {number}: {because}")
    return name


def _targets(statements: Sequence[str], settings: Settings, opened: Callable[[], Session]) -> dict[TableName, int]:
    """Each table that is written to, and the first statement that does so."""
    found: dict[TableName, int] = {}
    names = _NamesAt(statements, opened)
    with closing(names), closing(Targets(settings, names)) as targets:
        for number, text in enumerate(statements, start=1):
            names.number = number
            form = form_of(text)
            if not atomic_scripts.writes(form):
                continue
            target = targets.find(form.target)
            if target is None or target.metadata is None:
                raise _refused(
                    f"statement {number} ({form.name}) writes to {'.'.join(form.target)}, which is not an Iceberg "
                    "table of a catalog in the settings"
                )
            if target.branch is not None:
                raise _refused(f"statement {number} ({form.name}) names the branch {target.branch!r}")
            found.setdefault(target.name, number)
    return found


class _NamesAt:
    """What names without a catalog mean at a statement: those before it that move them are executed, and no others."""

    def __init__(self, statements: Sequence[str], opened: Callable[[], Session]) -> None:
        self.number = 1
        self._statements = statements
        self._opened = opened
        self._session: Session | None = None
        self._executed = 0

    def close(self) -> None:
        if self._session is not None:
            self._session.release()

    def __call__(self) -> Names:
        if self._session is None:
            self._session = self._opened()
        for text in self._statements[self._executed : self.number - 1]:
            if form_of(text).moves_names:
                self._session.execute(text, 1)
        self._executed = self.number - 1
        return names_of(self._session)


def _refused(because: str) -> UserError:
    return UserError(
        f"The step cannot be atomic: {because}.",
        hint="Move the statement into a step of its own, or remove 'atomic: true'.",
    )
