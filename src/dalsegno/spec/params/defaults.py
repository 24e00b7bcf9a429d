"""Parameters that nobody writes: dates of the run, and who runs. Maestro's, by their names.

Each is made when somebody refers to it, out of others that a workflow or a run may have overwritten. RUN_TS alone is
fixed when the run begins: the others follow from it, so that every step of a run sees the same dates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from dalsegno.errors import ParamError
from dalsegno.model.params import InternalMode, ParamDefinition, ParamMode, ParamSource, ParamType, Value
from dalsegno.spec.params.facts import RunFacts, StepFacts

#: The value of another parameter.
ValueOf = Callable[[str], Value]

_DATE, _HOUR = "%Y%m%d", "%H"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PACIFIC = "America/Los_Angeles"


@dataclass(frozen=True)
class Default:
    """A parameter that is there without being defined."""

    type: ParamType
    make: Callable[[ValueOf, RunFacts, StepFacts | None], Value]
    #: What happens, in words.
    description: str
    mode: ParamMode = ParamMode.MUTABLE_ON_START
    internal_mode: InternalMode | None = None

    @property
    def definition(self) -> ParamDefinition:
        """The layer below all others, for who overwrites it."""
        return ParamDefinition(
            self.type, mode=self.mode, internal_mode=self.internal_mode, source=ParamSource.SYSTEM_DEFAULT
        )


def millis(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _moment(timestamp: Value, zone: tzinfo = UTC) -> datetime:
    if not isinstance(timestamp, int):
        raise ParamError(f"A timestamp is a whole number of milliseconds; found {timestamp!r}.")
    return (_EPOCH + timestamp * _MILLISECOND).astimezone(zone)


def _zone(name: Value) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(str(name))
    except (KeyError, OSError, ValueError) as unknown:
        raise ParamError(
            f"'{name}' is not a time zone.", hint="Give one such as 'Europe/Berlin' or 'UTC'."
        ) from unknown


def _dated(origin: str, pattern: str, zone: str | None = "UTC", **shift: int) -> Default:
    """A date or hour of a timestamp: in a zone, or in that of the workflow, so much later."""
    where = f"in {zone}" if zone else "in the time zone of WORKFLOW_CRON_TIMEZONE"
    later = "".join(f", {amount:+d} {unit}" for unit, amount in shift.items())

    def make(of: ValueOf, run: RunFacts, step: StepFacts | None) -> str:
        timestamp, there = of(origin), _zone(zone or of("WORKFLOW_CRON_TIMEZONE"))
        try:
            return (_moment(timestamp, there) + timedelta(**shift)).strftime(pattern)
        except OverflowError as far_away:
            raise ParamError(f"{origin} is {timestamp} milliseconds since 1970: years go from 1 to 9999.") from far_away

    what = "the date" if pattern == _DATE else "the hour"
    return Default(ParamType.STRING, make, f"{what} of {origin} {where}{later}")


def _derived_timestamp(of: ValueOf, run: RunFacts, step: StepFacts | None) -> int:
    written = f"{of('TARGET_RUN_DATE')}{of('TARGET_RUN_HOUR')}"
    try:
        moment = datetime.strptime(written, _DATE + _HOUR)  # noqa: DTZ007 - the zone follows
    except ValueError as unreadable:
        raise ParamError(
            f"DERIVED_RUN_TS needs a TARGET_RUN_DATE such as 20240131 and a TARGET_RUN_HOUR such as 07; "
            f"found '{of('TARGET_RUN_DATE')}' and '{of('TARGET_RUN_HOUR')}'."
        ) from unreadable
    return millis(moment.replace(tzinfo=_zone(of("WORKFLOW_CRON_TIMEZONE"))))


def _fact(type_: ParamType, make: Callable[[RunFacts], Value], description: str) -> Default:
    return Default(type_, lambda _, run, __: make(run), description, ParamMode.CONSTANT, InternalMode.RESERVED)


def _step_fact(type_: ParamType, make: Callable[[StepFacts], Value], description: str) -> Default:
    def of_step(of: ValueOf, run: RunFacts, step: StepFacts | None) -> Value:
        if step is None:
            raise ParamError(f"Only a step has {description}.")
        return make(step)

    return Default(type_, of_step, description, ParamMode.CONSTANT, InternalMode.RESERVED)


#: Evaluated when a run begins, and stored.
RUN_TS = "RUN_TS"

WORKFLOW_DEFAULTS: Mapping[str, Default] = {
    "DSL_DEFAULT_TZ": Default(
        ParamType.STRING,
        lambda _, run, __: run.trigger_timezone or "UTC",
        "the time zone of the workflow's first time trigger, or UTC",
    ),
    "WORKFLOW_CRON_TIMEZONE": Default(
        ParamType.STRING,
        lambda of, run, _: run.initiator_timezone or of("DSL_DEFAULT_TZ"),
        "the time zone of the time trigger that began the run, or DSL_DEFAULT_TZ",
    ),
    RUN_TS: Default(
        ParamType.LONG,
        lambda _, run, __: millis(run.planned),
        "when the run was due, or began: milliseconds since 1970",
    ),
    "TARGET_RUN_DATE": _dated(RUN_TS, _DATE, None),
    "TARGET_RUN_HOUR": _dated(RUN_TS, _HOUR, None),
    "DERIVED_RUN_TS": Default(
        ParamType.LONG,
        _derived_timestamp,
        "the beginning of TARGET_RUN_HOUR on TARGET_RUN_DATE: milliseconds since 1970",
    ),
    "DERIVED_RUN_DATE_US_PACIFIC": _dated("DERIVED_RUN_TS", _DATE, _PACIFIC),
    "DERIVED_RUN_DATE_US_PACIFIC_MINUS_ONE": _dated("DERIVED_RUN_TS", _DATE, _PACIFIC, days=-1),
    "DERIVED_RUN_DATE_UTC": _dated("DERIVED_RUN_TS", _DATE),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE": _dated("DERIVED_RUN_TS", _DATE, days=-1),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE": _dated("DERIVED_RUN_TS", _DATE, days=1),
    "DERIVED_RUN_DATE_UTC_MINUS_ONE_HOUR": _dated("DERIVED_RUN_TS", _DATE, hours=-1),
    "DERIVED_RUN_DATE_UTC_PLUS_ONE_HOUR": _dated("DERIVED_RUN_TS", _DATE, hours=1),
    "DERIVED_RUN_HOUR_US_PACIFIC": _dated("DERIVED_RUN_TS", _HOUR, _PACIFIC),
    "DERIVED_RUN_HOUR_UTC": _dated("DERIVED_RUN_TS", _HOUR),
    "DERIVED_RUN_HOUR_UTC_MINUS_ONE_HOUR": _dated("DERIVED_RUN_TS", _HOUR, hours=-1),
    "DERIVED_RUN_HOUR_UTC_PLUS_ONE_HOUR": _dated("DERIVED_RUN_TS", _HOUR, hours=1),
    "LOCAL_RUN_DATE": _dated(RUN_TS, _DATE, None),
    "RUN_DATE": _dated(RUN_TS, _DATE),
    "RUN_DATE_MINUS_1": _dated(RUN_TS, _DATE, days=-1),
    "RUN_DATE_MINUS_7": _dated(RUN_TS, _DATE, days=-7),
    "owner": _fact(ParamType.STRING, lambda run: run.owner, "the workflow's owner"),
    "workflow_id": _fact(ParamType.STRING, lambda run: run.workflow_id, "the workflow's id"),
}

STEP_DEFAULTS: Mapping[str, Default] = {
    "workflow_instance_id": _fact(ParamType.LONG, lambda run: run.instance_id, "the number of the run"),
    "step_instance_uuid": _step_fact(ParamType.STRING, lambda step: step.uuid, "an id of the step in this run"),
    "step_attempt_id": _step_fact(ParamType.LONG, lambda step: step.attempt_id, "the number of the attempt"),
    "step_id": _step_fact(ParamType.STRING, lambda step: step.id, "the step's id"),
}
