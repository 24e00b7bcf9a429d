"""Time triggers: as they are written, and when they are due, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from enum import StrEnum
from typing import ClassVar

from dalsegno.model.workflow import Trigger


class CatchUpRule(StrEnum):
    """What becomes of times that came due while nobody could start a run."""

    #: They are missed.
    NONE = "NONE"
    #: One run, for the latest of them.
    LATEST = "LATEST"
    #: A run for each, the oldest first.
    ALL = "ALL"


@dataclass(frozen=True)
class CatchUp:
    rule: CatchUpRule = CatchUpRule.LATEST
    #: How many runs at most; only ALL has more than one. If more came due, those of the latest are started.
    most: int = 1


@dataclass(frozen=True)
class TimeTrigger(Trigger):
    """Begin a run at these times: a cron line of five fields (or Quartz's), or an alias such as ``@daily``."""

    kind: ClassVar[str] = "time"

    cron: str
    timezone: str | None = None
    #: Spread the starts of many workflows over this much time; a duration.
    fuzzy_max_delay: str | None = None
    catch_up: CatchUp = CatchUp()


# What cron lines mean.


@dataclass(frozen=True)
class MonthDay:
    """A day of any month: ``15``, ``15W``, ``L``, ``L-3``, ``LW``. A month that does not have it is left out."""

    #: From 1 on; 0 is the last day, -3 the third before it.
    number: int
    #: Not on Saturday and Sunday, but on the nearest of the other days in the same month.
    is_moved_off_weekends: bool = False


@dataclass(frozen=True)
class WeekDay:
    """A day of the week: ``FRI``, or one of a month: ``6#3``, ``FRIL``."""

    #: Monday is 1, Sunday 7, as in ISO 8601.
    number: int
    #: The first of the month, the second and so on; -1 is the last, 0 every one.
    which: int = 0


@dataclass(frozen=True)
class CronLine:
    """What a cron line says; None where it says nothing."""

    #: Seconds after midnight, ascending.
    times: tuple[int, ...]
    #: Ascending.
    months: tuple[int, ...]
    month_days: frozenset[MonthDay] | None = None
    week_days: frozenset[WeekDay] | None = None
    #: Whether a day needs to be one of both only: cron's rule for lines that restrict both.
    is_either_enough: bool = False
    years: frozenset[int] | None = None
    #: Whether its times are the beats of an interval, such as every 15 minutes, and no appointments.
    is_interval: bool = False


@dataclass(frozen=True)
class Schedule:
    """One time trigger of a workflow."""

    #: What it says, in one way of writing: in another version of the workflow, the same name is the same trigger.
    name: str
    line: CronLine
    zone: tzinfo = UTC
    #: A start may come so much later than it is due.
    longest_delay: timedelta = timedelta()
    catch_up: CatchUp = field(default_factory=CatchUp)


@dataclass(frozen=True)
class Timetable:
    """All time triggers of a workflow."""

    workflow_id: str
    schedules: tuple[Schedule, ...]
