"""Whether changes of tables start a run now, or when.

A table has *enough* when a threshold of the trigger is reached, and is *ready* when it has been quiet for long enough,
too. A run is started when a table is ready, or all of them; or when something has waited for as long as it may. While a
run of the workflow is open, nothing is started: it may process what is there. When it has ended, what is still
unprocessed counts as news only if something came, or something was processed. So a run that fails is not followed by
another for the same changes, until they have waited once more for as long as they may; and where new changes come all
the time, runs that fail one after the other start at longer and longer intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dalsegno.triggers.table_triggers.model import Memory, Rules, Unprocessed, Waiting

#: Between starts in vain: this, then twice as much and so on, up to the other.
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)

News = Mapping[str, Unprocessed]


@dataclass(frozen=True)
class Decision:
    #: What is to be remembered from now on.
    memory: Memory
    #: Whether to start a run.
    starts: bool = False
    #: When time alone leads to a start, if nothing else happens.
    again_at: datetime | None = None


def decide(
    rules: Rules, memory: Memory, found: Mapping[str, Unprocessed | None], now: datetime, *, is_open: bool
) -> Decision:
    """What to do about what was found of each table; ``is_open``: a run of the workflow has not ended."""
    news = {key: each for key, each in found.items() if each is not None}
    memory = _seen(memory, news, now)
    if not news or is_open:
        return Decision(memory)
    due = _due(rules, memory, news, has_all=len(news) == len(found))
    if due is None or due > now:
        return Decision(memory, again_at=due)
    return Decision(
        replace(
            memory,
            starts=memory.starts + 1,
            started_at=now,
            started_for={key: each.span for key, each in news.items()},
            in_vain=_starts_in_vain(memory, news),
        ),
        starts=True,
    )


def _seen(memory: Memory, news: News, now: datetime) -> Memory:
    """The memory with what waits now. No moment of it lies ahead, so that clocks which are put back do no harm."""
    waiting = {}
    for key, each in news.items():
        before = memory.waiting.get(key)
        since = before.since if before and before.span[0] == each.span[0] else each.first
        last = before.last if before and before.span[1] == each.span[1] else each.last
        waiting[key] = Waiting(each.span, min(since, now), min(last, now))
    return replace(memory, waiting=waiting, started_at=memory.started_at and min(memory.started_at, now))


def _due(rules: Rules, memory: Memory, news: News, *, has_all: bool) -> datetime | None:
    """When a run is to be started, if nothing more comes."""
    ready = {key: at for key, each in news.items() if (at := _ready_at(rules, memory, key, each)) is not None}
    fresh = [key for key in ready if memory.started_for.get(key) != news[key].span]
    moments = [ready[key] for key in fresh if news[key].is_urgent or not rules.needs_all]
    if rules.needs_all and fresh and has_all and len(ready) == len(news):
        moments.append(max(ready.values()))
    moments += _latest(rules, memory, news)
    return max(min(moments), _earliest(rules, memory, news)) if moments else None


def _ready_at(rules: Rules, memory: Memory, key: str, each: Unprocessed) -> datetime | None:
    if each.is_urgent:
        return memory.waiting[key].last
    return memory.waiting[key].last + rules.quiet if _is_enough(rules, each) else None


def _is_enough(rules: Rules, each: Unprocessed) -> bool:
    """What the summaries do not say is not waited for."""
    thresholds = (
        (each.snapshots, rules.min_snapshots),
        (each.files, rules.min_files),
        (each.rows, rules.min_rows),
        (each.bytes, rules.min_bytes),
    )
    given = [(count, least) for count, least in thresholds if least is not None]
    return not given or any(count is None or count >= least for count, least in given)


def _latest(rules: Rules, memory: Memory, news: News) -> list[datetime]:
    """When each table has waited for as long as it may; what a run was started for already waits anew."""
    if rules.max_wait is None:
        return []
    found = []
    for key, each in news.items():
        since = memory.waiting[key].since
        if memory.started_at and memory.started_for.get(key) == each.span:
            since = max(since, memory.started_at)
        # Another run would be refused, too.
        if each.refusal is None:
            found.append(since + rules.max_wait)
    return found


def _earliest(rules: Rules, memory: Memory, news: News) -> datetime:
    if memory.started_at is None:
        return min(each.since for each in memory.waiting.values())
    return memory.started_at + max(rules.min_interval, _pause(rules, _starts_in_vain(memory, news)))


def _starts_in_vain(memory: Memory, news: News) -> int:
    """How many runs in a row, up to now, have not processed the oldest of what they were started for."""
    started_for = memory.started_for
    is_in_vain = started_for and all(key in news and news[key].span[0] == span[0] for key, span in started_for.items())
    return memory.in_vain + 1 if is_in_vain else 0


def _pause(rules: Rules, in_vain: int) -> timedelta:
    if not in_vain:
        return timedelta()
    pause = min(_FIRST_PAUSE * (1 << min(in_vain - 1, 10)), _LONGEST_PAUSE)
    return pause if rules.max_wait is None else min(pause, rules.max_wait)
