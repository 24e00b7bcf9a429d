"""Whoever gives signs of life is not taken for dead; whoever gives none lets go before it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dalsegno.plan import liveness
from dalsegno.plan.liveness import TAKEN_OVER_SECONDS, Sighting, sighted
from dalsegno.steps import supervision

PAUSES = st.lists(st.floats(0, 20), max_size=60)


@given(PAUSES, st.floats(0, 200))
def test_nobody_is_silent_before_the_time_is_over(pauses: list[float], last_sign_at: float) -> None:
    """A watcher that looks at any times, at one who gives a sign every three seconds until it dies."""
    now, seen = 0.0, dict[str, Sighting]()
    for pause in pauses:
        now += pause
        sign = int(min(now, last_sign_at) // liveness.BEAT_SECONDS)
        seen = sighted(seen, {"a": sign}, pause)
        if seen["a"].is_silent:
            assert now - sign * liveness.BEAT_SECONDS >= TAKEN_OVER_SECONDS


@given(st.floats(0.1, 2), st.integers(0, 10))
def test_one_who_is_silent_is_noticed(pause: float, signs: int) -> None:
    looks, seen = 0, dict[str, Sighting]()
    for sign in range(signs):
        seen = sighted(seen, {"a": sign}, pause)
    while not (seen and seen["a"].is_silent):
        seen = sighted(seen, {"a": "last"}, pause)
        looks += 1
    assert TAKEN_OVER_SECONDS <= looks * pause <= TAKEN_OVER_SECONDS + 3 * pause


def test_who_did_not_look_says_nothing() -> None:
    """The machine slept, or the store was away."""
    seen = sighted({}, {"a": 1}, 0)
    assert not sighted(seen, {"a": 1}, 3600)["a"].is_silent


def test_those_who_are_gone_are_forgotten() -> None:
    assert sighted(sighted({}, {"a": 1, "b": 1}, 0), {"b": 1}, 1) == {"b": Sighting(1, 1.0)}


def test_work_is_let_go_of_before_others_take_it_up() -> None:
    asked, killed = supervision.ABANDONED_SECONDS
    in_order = [
        2 * liveness.BEAT_SECONDS,
        asked,
        liveness.LET_GO_SECONDS,
        killed,
        liveness.JOIN_AGAIN_SECONDS,
        TAKEN_OVER_SECONDS,
    ]
    assert in_order == sorted(set(in_order))
