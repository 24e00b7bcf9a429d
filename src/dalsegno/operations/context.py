"""What every verb needs: settings, a store, and who calls. Each part is opened when a verb first needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from dalsegno.errors import Forbidden, UserError
from dalsegno.model.callers import Caller
from dalsegno.model.stored_text import fault_of_text
from dalsegno.operations.roles import least_role
from dalsegno.settings import Settings

if TYPE_CHECKING:
    from dalsegno.capture.lake import Lake
    from dalsegno.capture.lake_reader import LakeReader
    from dalsegno.operations.machinery import Machinery
    from dalsegno.store import Store
    from dalsegno.store.audit_log import Change
    from dalsegno.store.reading import Readable


_LONGEST_REASON = 1000


class Context:
    """Used by one thread at a time."""

    def __init__(
        self,
        store: Store | None,
        settings: Settings,
        caller: Caller,
        *,
        clock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.caller = caller
        self.clock = clock
        #: Called when a run was started, for whatever runs steps in the same process.
        self.wake = wake
        self._store = store
        self._reader: Readable | None = None
        self._lake: Lake | None = None

    @property
    def store(self) -> Store:
        """To change something. SQLAlchemy takes longer to load than most reading does."""
        if self._store is None:
            from dalsegno.store import Store  # noqa: PLC0415

            self._store = Store.open(self.settings.store)
        return self._store

    @property
    def database(self) -> Readable:
        """To read: the store if it is open, else what is there much sooner."""
        if self._store is not None:
            return self._store.database
        if self._reader is None:
            from dalsegno.store.sqlite_file import open_for_reading  # noqa: PLC0415

            self._reader = open_for_reading(self.settings.store)
        return self._reader

    @cached_property
    def machinery(self) -> Machinery:
        from dalsegno.operations.machinery import Machinery  # noqa: PLC0415 - the engine takes a moment

        return Machinery(self.settings, self.store, self.caller, clock=self.clock, wake=self.wake)

    @property
    def lake(self) -> Lake:
        if self._lake is None:
            from dalsegno.capture.lake import Lake  # noqa: PLC0415 - PyIceberg takes seconds to import

            self._lake = Lake(self.settings, self.store, clock=self.clock, actor=self.caller.name)
        return self._lake

    @property
    def lake_reader(self) -> LakeReader:
        from dalsegno.capture.lake_reader import LakeReader  # noqa: PLC0415
        from dalsegno.store.store_reader import StoreReader  # noqa: PLC0415

        return LakeReader(self.settings, StoreReader(self.database))

    def require(self, verb: str) -> None:
        """Refuse a caller who lacks the role, before anything is read or done."""
        least = least_role(verb)
        if not self.caller.may(least):
            roles = ", ".join(sorted(self.caller.roles)) or "no role"
            raise Forbidden(
                f"{verb} needs the role {least}; {self.caller.name} has {roles}.",
                hint="Ask somebody who has it, or for a token with that role.",
            )

    @contextmanager
    def changing(self, verb: str, reason: str | None = None) -> Iterator[Change]:
        """Make a change as the caller. Its transaction also writes the audit log, once the change is described."""
        self.require(verb)
        if reason is not None and (len(reason) > _LONGEST_REASON or fault_of_text(reason)):
            said = fault_of_text(reason) or f"{len(reason)} characters, which is more than {_LONGEST_REASON}"
            raise UserError(f"The reason cannot be recorded: it holds {said}.")
        from dalsegno.store.audit_log import Change, recording  # noqa: PLC0415

        with recording(Change(self.caller, verb, self.clock(), reason or None)) as change:
            yield change

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._lake is not None:
            # It closes the store, too.
            self._lake.close()
        elif self._store is not None:
            self._store.close()
