"""What is known of a statement before it is executed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: The parts of a name as written, quotes removed.
Name = tuple[str, ...]


class Effect(StrEnum):
    """What a statement changes, and whether an Iceberg table shows it afterwards."""

    #: Returns rows only.
    READ = "read"
    #: Changes the session's own state only: settings, the current namespace, temporary views, variables, the cache.
    SESSION = "session"
    #: Writes to one table. Whenever it changes the table, the new snapshot carries the session's snapshot properties.
    STAMPED = "stamped"
    #: Changes one table, namespace, view or function, and may leave no stamp.
    UNSTAMPED = "unstamped"
    #: What it does, or where, cannot be known beforehand.
    UNKNOWN = "unknown"

    @property
    def may_write(self) -> bool:
        """Whether a statement of this effect may change more than the session."""
        return self not in (Effect.READ, Effect.SESSION)


@dataclass(frozen=True)
class Form:
    """A statement as its text describes it; whether its target is an Iceberg table, the text does not say."""

    effect: Effect
    #: As people say it: "INSERT INTO", "MERGE", "TRUNCATE TABLE", "BEGIN … END".
    name: str
    #: The table (or other object) written to, case kept; () if there is none or it is unknown.
    target: Name = ()
    #: Every target of a statement with several, where they are known.
    targets: tuple[Name, ...] = ()
    #: Executing it a second time, with nothing else in between, leaves what executing it once leaves.
    is_idempotent: bool = False
    #: Of SESSION: executing it again in a new session later gives the state that it gave.
    is_replayable: bool = False
    #: Of SESSION: the session variables that it sets to something else than a constant.
    variables: tuple[str, ...] = ()
    #: It changes, or may change, what names without catalog or namespace mean.
    moves_names: bool = False
    #: It makes the table or replaces it as a whole: uuid, schema or history may be others afterwards.
    creates: bool = False
    #: Its target is not there afterwards under this name.
    drops: bool = False
    #: It does something else than to change the rows of a table.
    is_ddl: bool = False
    #: INSERT OVERWRITE.
    overwrites: bool = False
    #: Of that: how many columns its PARTITION clause gives a value; 0 if it leaves one of its columns without.
    fixed_columns: int = 0
    #: Of SET: the setting.
    setting: str = ""
    #: Of UNKNOWN: why, as the end of a sentence: "… because it writes to several tables".
    because: str = ""


def unknown(name: str, because: str, *, targets: tuple[Name, ...] = ()) -> Form:
    """Whatever is in doubt may have moved the current namespace, too."""
    return Form(Effect.UNKNOWN, name, targets=targets, moves_names=True, because=because)


class Doubt(Exception):
    """A statement, or a part of it, cannot be understood; its text says why, as ``Form.because`` does."""
