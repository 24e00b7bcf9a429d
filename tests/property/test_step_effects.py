"""What a step's new state means for others, and which steps fit into limits."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dalsegno.model.runs import Ending, Restarted, RestartFrom, StepState, StepStatus
from dalsegno.plan.claims import free_permits, is_due, within_limits
from dalsegno.plan.restarts import wish_of_json, wish_to_json
from dalsegno.plan.step_effects import effects_of

NOW = datetime(2026, 11, 16, tzinfo=UTC)
MOMENTS = st.none() | st.integers(-2, 2).map(lambda seconds: NOW + timedelta(seconds=seconds))
STATES = st.builds(
    StepState,
    st.just("s"),
    status=st.sampled_from(StepStatus),
    attempt=st.integers(1, 2),
    ready_at=MOMENTS,
    is_claimed=st.booleans(),
    ending=st.none() | st.sampled_from(Ending),
    failure=st.none() | st.sampled_from([{"message": "a"}, {"message": "b"}]),
)


@given(st.none() | STATES, STATES)
def test_effects(old: StepState | None, new: StepState) -> None:
    found = effects_of(old, new, NOW)
    # Whoever is to run it finds it now, or is woken later, and never both.
    assert found.is_ready is is_due(new, NOW)
    assert found.is_ready + (found.ready_later is not None) == (new.ready_at is not None)
    assert found.ready_later is None or found.ready_later > NOW
    assert not found.is_to_end or new.is_claimed
    if found.has_stopped_waiting or found.is_let_go:
        assert old is not None
    if old is not None and old.is_claimed:
        assert found.is_let_go is not new.is_claimed
    if found.is_event:
        assert new.status not in (StepStatus.CREATED, StepStatus.NOT_CREATED)
        assert old is None or (old.status, old.attempt, old.failure) != (new.status, new.attempt, new.failure)


@given(STATES)
def test_a_state_that_stays_is_not_told_twice(state: StepState) -> None:
    found = effects_of(state, state, NOW)
    assert not (found.is_event or found.is_let_go or found.has_stopped_waiting)


NAMES = st.sampled_from("abc")


@given(
    st.lists(st.sets(NAMES), max_size=12),
    st.dictionaries(NAMES, st.integers(0, 4)),
    st.dictionaries(NAMES, st.integers(0, 5)),
    st.sets(NAMES),
)
def test_limits_are_kept_and_used_up(
    wanted: list[set[str]], limits: dict[str, int], held: dict[str, int], ours: set[str]
) -> None:
    free = free_permits({*"abc"}, limits, held, ours)
    taken = within_limits(list(enumerate(wanted)), free)
    used = Counter(name for _, names in taken for name in names)
    for name, most in limits.items():
        assert used[name] == 0 if name not in ours else used[name] <= max(most - held.get(name, 0), 0)
    # In their order, and none is left out for which there was room when its turn came.
    assert [each for each, _ in taken] == sorted(each for each, _ in taken)
    left = dict(free)
    for number, names in enumerate(wanted):
        fits = all(left[name] > 0 for name in names)
        assert fits is (number in dict(taken))
        for name in names if fits else ():
            left[name] -= 1


@given(
    st.builds(
        Restarted,
        st.sampled_from(RestartFrom),
        st.none() | st.text(),
        st.dictionaries(st.text(), st.lists(st.text()).map(tuple)),
        st.dictionaries(st.text(), st.lists(st.integers()).map(tuple)),
        is_version_named=st.booleans(),
    )
)
def test_a_wish_outlives_the_wait_for_its_turn(wish: Restarted) -> None:
    assert wish_of_json(wish_to_json(wish, 3), wish.failed_iterations) == wish
