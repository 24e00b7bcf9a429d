"""Signals and those that wait for them: neither overlooks the other, whoever comes first."""

from __future__ import annotations

from dalsegno.model.signals import Announcement, Match, Wanted, WantedSignal
from dalsegno.model.workflow import Operator
from dalsegno.store import Store, run_queries, runs, signals
from tests.store.examples import NOW
from tests.store.races import overlap

WANTED = Wanted("x", {"n": Match(Operator.GREATER_OR_EQUAL, 2)})


def tell(store: Store, n: int = 2, name: str = "x") -> None:
    with store.database.writing() as connection:
        signals.announce(connection, [Announcement(name, {"n": n})], NOW)


def wait(store: Store, wanted_signals: WantedSignal, step: str = "s") -> None:
    with store.database.writing() as connection:
        signals.wait(connection, "r", "r", step, [wanted_signals])


def look(store: Store, wanted: Wanted = WANTED) -> WantedSignal:
    with store.database.reading() as connection:
        return signals.look_for(connection, wanted)


def found(store: Store) -> dict[str, int | None]:
    """By step, the signal that it has waited for."""
    with store.database.reading() as connection:
        return {row["step_id"]: row["signal_id"] for row in run_queries.waits_of_flow(connection, "r")}


def woken(store: Store) -> list[list[str]]:
    with store.database.reading() as connection:
        return [step for message in runs.messages(connection) for step in map(list, message["message"].steps)]


def test_what_is_announced_after_somebody_looked_is_found(store: Store) -> None:
    tell(store, 1)
    wanted_signals = look(store)
    assert wanted_signals == WantedSignal(WANTED, None, 1)
    tell(store, 2)
    tell(store, 3)
    tell(store, 1)
    wait(store, wanted_signals)
    assert found(store) == {"s": 3}
    assert woken(store) == []


def test_the_newest_is_found_however_many_there_are(store: Store) -> None:
    with store.database.writing() as connection:
        signals.announce(connection, [Announcement("x", {"n": n}) for n in (2, 3, *[0] * 1200)], NOW)
    assert look(store) == WantedSignal(WANTED, 2, 1202)
    assert look(store, Wanted("x", {"n": Match(Operator.EQUAL, 5)})).found is None
    assert look(store, Wanted("y")) == WantedSignal(Wanted("y"), None, 0)


def test_a_signal_meets_a_step_that_begins_to_wait(url: str) -> None:
    with Store.open(url) as one, Store.open(url) as other:
        assert overlap(one, (wait, look(one)), other, (tell,)).error is None
        assert found(one) == {"s": 1}
        assert woken(one) == [["r", "s"]]


def test_a_step_that_begins_to_wait_sees_a_signal(url: str) -> None:
    with Store.open(url) as one, Store.open(url) as other:
        assert overlap(one, (tell,), other, (wait, look(other))).error is None
        assert found(one) == {"s": 1}
        assert woken(one) == []


def test_the_same_key_at_the_same_time_is_one_signal(url: str) -> None:
    def tell_once(store: Store) -> None:
        with store.database.writing() as connection:
            signals.announce(connection, [Announcement("x", {"n": 2}, key="k")], NOW)

    with Store.open(url) as one, Store.open(url) as other:
        assert overlap(one, (tell_once,), other, (tell_once,)).error is None
        with one.database.reading() as connection:
            assert len(signals.signal_rows(connection, limit=10)) == 1


def test_who_waits_no_longer_is_not_woken(store: Store) -> None:
    for step in ("a", "b"):
        wait(store, look(store), step)
    with store.database.writing() as connection:
        signals.forget_waits(connection, [("r", "a")], only_open=True)
    tell(store, 1)
    tell(store, 2, name="y")
    assert woken(store) == []
    tell(store, 2)
    tell(store, 3)
    assert woken(store) == [["r", "b"]]
    assert found(store) == {"b": 3}
