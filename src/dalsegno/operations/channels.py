"""Whether the channels that a workflow's alerts go to are in the settings."""

from __future__ import annotations

from collections.abc import Mapping

from dalsegno.model.workflow import Definition
from dalsegno.settings import FILE_NAME, Settings
from dalsegno.spec.alerting import CHANNEL, alerting_of
from dalsegno.spec.nodes import NOWHERE, SourceLocation
from dalsegno.spec.problems import Problems, meant


def check_channels(
    definition: Definition,
    marks: Mapping[tuple[str, ...], SourceLocation],
    settings: Settings,
    problems: Problems,
    *,
    is_warning: bool = False,
) -> None:
    """Refuse a channel that is not there, because alerts to it reach nobody; or warn of it."""
    properties = definition.properties
    alerting = alerting_of({**properties.extra, "alerting": properties.alerting})
    known = sorted(settings.notifications)
    for name in dict.fromkeys((*alerting.on_failure, *alerting.on_late, *alerting.on_lag)):
        if name not in settings.notifications:
            there = f"the settings have {', '.join(known)}" if known else "the settings have none"
            hint = meant(name, known) or f"{there}; add [notifications.{name}] to {FILE_NAME}"
            mark = marks.get((CHANNEL, name), NOWHERE)
            problems.add(f"there is no channel {name!r}", mark, "alerting", hint, warning=is_warning)
