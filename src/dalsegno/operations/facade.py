"""The front door: everything that a user can do, one method per verb, grouped by what it is about.

The command line and the server call nothing else. A namespace is imported when it is first used, so that a command
which only looks something up waits for nothing that it does not need.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dalsegno import settings as settings_module
from dalsegno.clock import utc_now
from dalsegno.model.callers import Caller
from dalsegno.operations.context import Context
from dalsegno.settings import Settings

if TYPE_CHECKING:
    from dalsegno.operations.admin import Admin
    from dalsegno.operations.audits import Audits
    from dalsegno.operations.captures import Captures
    from dalsegno.operations.checkpoints import Checkpoints
    from dalsegno.operations.machinery import Machinery
    from dalsegno.operations.models.verbs import Models
    from dalsegno.operations.runs import Runs
    from dalsegno.operations.signals import Signals
    from dalsegno.operations.tables import Tables
    from dalsegno.operations.templates import Templates
    from dalsegno.operations.triggers import Triggers
    from dalsegno.operations.workflows import Workflows
    from dalsegno.store import Store


class Operations:
    """What one caller can do with one store. Used by one thread at a time."""

    def __init__(
        self,
        store: Store | None,
        settings: Settings,
        caller: Caller,
        *,
        clock: Callable[[], datetime] = utc_now,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """``store``: None opens the one that the settings name, when it is needed."""
        self._context = Context(store, settings, caller, clock=clock, wake=wake)

    @classmethod
    def open(cls, settings_file: Path | None = None, *, caller: Caller | None = None) -> Self:
        """With a settings file, or with the nearest ``dalsegno.toml``; as whoever runs this process, by default."""
        if caller is None:
            from dalsegno.operations.callers import local_caller  # noqa: PLC0415

            caller = local_caller()
        return cls(None, settings_module.load(settings_file), caller)

    @property
    def settings(self) -> Settings:
        return self._context.settings

    @property
    def caller(self) -> Caller:
        return self._context.caller

    @property
    def clock(self) -> Callable[[], datetime]:
        return self._context.clock

    @property
    def store(self) -> Store:
        return self._context.store

    @property
    def machinery(self) -> Machinery:
        """What verbs are done with; for whatever runs steps and watches triggers."""
        return self._context.machinery

    @cached_property
    def workflows(self) -> Workflows:
        from dalsegno.operations.workflows import Workflows  # noqa: PLC0415

        return Workflows(self._context)

    @cached_property
    def models(self) -> Models:
        from dalsegno.operations.models.verbs import Models  # noqa: PLC0415

        return Models(self._context)

    @cached_property
    def runs(self) -> Runs:
        from dalsegno.operations.runs import Runs  # noqa: PLC0415

        return Runs(self._context)

    @cached_property
    def captures(self) -> Captures:
        from dalsegno.operations.captures import Captures  # noqa: PLC0415

        return Captures(self._context)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        from dalsegno.operations.checkpoints import Checkpoints  # noqa: PLC0415

        return Checkpoints(self._context)

    @cached_property
    def tables(self) -> Tables:
        from dalsegno.operations.tables import Tables  # noqa: PLC0415

        return Tables(self._context)

    @cached_property
    def triggers(self) -> Triggers:
        from dalsegno.operations.triggers import Triggers  # noqa: PLC0415

        return Triggers(self._context)

    @cached_property
    def signals(self) -> Signals:
        from dalsegno.operations.signals import Signals  # noqa: PLC0415

        return Signals(self._context)

    @cached_property
    def templates(self) -> Templates:
        from dalsegno.operations.templates import Templates  # noqa: PLC0415

        return Templates(self._context)

    @cached_property
    def audits(self) -> Audits:
        from dalsegno.operations.audits import Audits  # noqa: PLC0415

        return Audits(self._context)

    @cached_property
    def admin(self) -> Admin:
        from dalsegno.operations.admin import Admin  # noqa: PLC0415

        return Admin(self._context)

    def close(self) -> None:
        self._context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
