"""What people want to be told of a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Alerting:
    """Whom to tell, by the names of channels, and when."""

    #: Of runs that failed or timed out.
    on_failure: tuple[str, ...] = ()
    #: Of runs that have not completed so long after they were asked for.
    on_late: tuple[str, ...] = ()
    complete_within: timedelta | None = None
    #: Of tables in which something has waited for so long to be processed.
    on_lag: tuple[str, ...] = ()
    max_lag: timedelta | None = None
