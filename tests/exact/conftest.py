"""Which pairs of form, fault, action and wrapping were covered: printed in the end."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.exact.actions import ACTIONS
from tests.exact.faults import FAULTS
from tests.exact.forms import FORMS
from tests.exact.wrappings import WRAPPINGS

_NAMES = {
    "form": [each.name for each in FORMS],
    "fault": [each.name for each in FAULTS],
    "action": [each.name for each in ACTIONS],
    "wrapping": [each.name for each in WRAPPINGS],
}
#: Pairs that are named, if so many or fewer are missing.
_FEW = 40


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [each for each in terminalreporter.getreports("passed") if each.when == "call"]
    played = [dict(each.user_properties) for each in reports]
    played = [each for each in played if "form" in each]
    if not played:
        return
    happened = sum(bool(each["happened"]) for each in played)
    terminalreporter.section("scenarios")
    terminalreporter.line(f"{len(played)} scenarios were exact; the fault happened in {happened} of them")
    for one, other in combinations(_NAMES, 2):
        covered = {(each[one], each[other]) for each in played}
        every = [(a, b) for a in _NAMES[one] for b in _NAMES[other]]
        missing = [pair for pair in every if pair not in covered]
        terminalreporter.line(f"{one} and {other}: {len(every) - len(missing)} of {len(every)} pairs")
        if len(missing) <= _FEW:
            for a, b in missing:
                terminalreporter.line(f"  not covered: {a} and {b}")
