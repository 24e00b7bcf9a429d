"""A duty has one owner at a time, whatever clocks say, and passes on when its owner is silent."""

from __future__ import annotations

from dalsegno.engine.lease import Lease
from dalsegno.store import Store


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def leases(store: Store) -> tuple[Lease, Lease, Stopwatch]:
    stopwatch = Stopwatch()
    first, second = (Lease(store, "triggers", name, stopwatch=stopwatch) for name in ("a", "b"))
    return first, second, stopwatch


def test_the_first_to_ask_has_it(store: Store) -> None:
    first, second, _ = leases(store)

    assert first.is_held()
    assert not second.is_held()
    assert first.is_held()


def test_an_owner_that_gives_signs_of_life_keeps_it(store: Store) -> None:
    first, second, stopwatch = leases(store)
    assert first.is_held()
    for _ in range(60):
        stopwatch.seconds += 1
        assert first.is_held()
        assert not second.is_held()
    assert first.term == 1


def test_it_passes_on_when_its_owner_is_silent_and_the_owner_gives_up_before(store: Store) -> None:
    first, second, stopwatch = leases(store)
    assert first.is_held()
    while not second.is_held():
        stopwatch.seconds += 1
    assert second.term == 2
    assert stopwatch.seconds == 112

    assert not first.is_held()
    assert second.is_held()


def test_one_that_cannot_renew_it_does_not_believe_to_have_it(store: Store) -> None:
    first, _, stopwatch = leases(store)
    assert first.is_held()
    with store.database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE leases RENAME TO away")
    stopwatch.seconds += 7
    assert first.is_held()
    stopwatch.seconds += 2
    assert not first.is_held()
    with store.database.writing() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO leases")
    assert first.is_held()
    assert first.term == 1


def test_what_is_released_is_anybodys_at_once(store: Store) -> None:
    first, second, _ = leases(store)
    assert first.is_held()
    assert not second.is_held()

    first.release()

    assert second.is_held()
    assert second.term == 2
    assert not first.is_held()
