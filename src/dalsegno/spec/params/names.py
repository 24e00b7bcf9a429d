"""What a reference may mean, and what to say when it means nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dalsegno.hints import closest

#: Between a step's id and the name of its parameter; a dot may stand there as well.
SEPARATOR = "__"


def splits(name: str) -> Iterator[tuple[str, str]]:
    """Where a reference may be cut into a step's id and a name: the longest id first, as ids may have dots."""
    for separator in (SEPARATOR, "."):
        at = name.rfind(separator)
        while at > 0:
            if rest := name[at + len(separator) :]:
                yield name[:at], rest
            at = name.rfind(separator, 0, at + len(separator) - 1)


def advice(name: str, known: Collection[str], before: Collection[str]) -> str:
    """What to do about a name that means nothing; ``before`` are the steps whose parameters could be meant."""
    if near := closest(name, known):
        return f"Did you mean '{near}'?"
    cuts = list(splits(name))
    for step_id, rest in cuts:
        if step_id in before:
            return f"Step '{step_id}' has not set '{rest}'."
    if cuts:
        return not_before(cuts[-1][0], before)
    return "Define it in the step or in the workflow; a dollar sign that is one is written '$$'."


def not_before(step_id: str, before: Collection[str]) -> str:
    """Why the parameters of a step cannot be used."""
    known = ", ".join(f"'{each}'" for each in sorted(before)) or "none"
    return f"'{step_id}' is not a step before this one; those are: {known}."
