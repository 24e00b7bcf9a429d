"""Whoever comes first wins, exactly one, and the others are told who it was."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from dalsegno.errors import CapturePending, CheckpointMoved
from dalsegno.model.captures import Capture, CaptureState
from dalsegno.store import Store
from tests.store.examples import MEMBERS, NOW, PLAYBACK, at, capture, make_ready, process
from tests.store.races import Act, overlap, race


def record(store: Store, new: Capture) -> None:
    store.record_capture(new)


def commit(store: Store, id: str, by: str) -> None:
    store.commit(id, by=by, now=NOW)


def abandon(store: Store, id: str, by: str) -> None:
    store.abandon(id, by=by, now=NOW, reason="changed my mind")


def set_checkpoint(store: Store, to: int) -> None:
    store.move_checkpoint("daily", {PLAYBACK: (None, at(to))}, by="carol", now=NOW, reason="from latest")


def test_of_many_that_record_one_wins_and_the_others_learn_which(url: str) -> None:
    endings = race(url, [(record, capture(f"c{n}", created_by=f"process {n}")) for n in range(6)])
    with Store.open(url) as store:
        (winner,) = store.captures()
    won = [n for n, ending in enumerate(endings) if ending.error is None]
    assert [f"c{n}" for n in won] == [winner.id]
    lost = [ending for ending in endings if ending.error is not None]
    assert {ending.error for ending in lost} == {"CapturePending"}
    assert {ending.capture_id for ending in lost} == {winner.id}
    assert all(winner.created_by in ending.message for ending in lost)


def test_commit_against_abandon_has_one_winner(url: str) -> None:
    with Store.open(url) as store:
        make_ready(store, capture())
    committed, abandoned = race(url, [(commit, "c1", "ada"), (abandon, "c1", "bob")])
    with Store.open(url) as store:
        settled, position = store.capture("c1"), store.position("daily", PLAYBACK)
    assert [committed.error, abandoned.error].count(None) == 1
    if committed.error is None:
        assert (settled.state, settled.settled_by, position) == (CaptureState.COMMITTED, "ada", at(10))
        assert abandoned.error == "CaptureSettled"
        assert "committed by ada" in abandoned.message
    else:
        assert (settled.state, settled.settled_by, position) == (CaptureState.ABANDONED, "bob", None)
        assert committed.error == "CaptureSettled"
        assert "abandoned by bob" in committed.message


def test_many_commits_move_the_checkpoint_once(url: str) -> None:
    with Store.open(url) as store:
        make_ready(store, capture())
    endings = race(url, [(commit, "c1", f"process {n}") for n in range(6)])
    assert {ending.error for ending in endings} == {None}
    with Store.open(url) as store:
        assert len(store.checkpoints("daily")) == 1


def ready(store: Store, id: str) -> None:
    store.mark_ready(id, {})


#: What is there before, who comes first, who comes before the first has committed, and what that one meets.
#: No row of ``positions`` exists in any of them: locking rows would let several of these through.
OVERLAPS: dict[str, tuple[Act | None, Act, Act, str | None]] = {
    "record, record": (None, (record, capture("c1")), (record, capture("c2")), "CapturePending"),
    "record, set": (None, (record, capture("c1")), (set_checkpoint, 3), "CapturePending"),
    "set, record": (None, (set_checkpoint, 3), (record, capture("c1")), "CheckpointMoved"),
    "set, set": (None, (set_checkpoint, 3), (set_checkpoint, 4), "CheckpointMoved"),
    "commit, record": (
        (make_ready, capture("c1")),
        (commit, "c1", "ada"),
        (record, capture("c2")),
        "CheckpointMoved",
    ),
    "commit, set": (
        (make_ready, capture("c1")),
        (commit, "c1", "ada"),
        (set_checkpoint, 3),
        "CheckpointMoved",
    ),
    "commit, abandon": (
        (make_ready, capture("c1")),
        (commit, "c1", "ada"),
        (abandon, "c1", "bob"),
        "CaptureSettled",
    ),
    "abandon, commit": (
        (make_ready, capture("c1")),
        (abandon, "c1", "bob"),
        (commit, "c1", "ada"),
        "CaptureSettled",
    ),
    "abandon, record": ((make_ready, capture("c1")), (abandon, "c1", "bob"), (record, capture("c2")), None),
    "abandon, ready": ((record, capture("c1")), (abandon, "c1", "bob"), (ready, "c1"), "CaptureSettled"),
    "ready, commit": ((record, capture("c1")), (ready, "c1"), (commit, "c1", "ada"), None),
    "commit, commit": ((make_ready, capture("c1")), (commit, "c1", "ada"), (commit, "c1", "bob"), None),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_the_second_waits_for_the_first_and_meets_what_it_left(url: str, name: str) -> None:
    before, first, second, expected = OVERLAPS[name]
    with Store.open(url) as one, Store.open(url) as other:
        if before:
            before[0](one, *before[1:])
        ended = overlap(one, first, other, second)
        assert ended.error == expected
        positions, history = one.positions(), one.checkpoints("daily")
    assert len(positions) == len(history) <= 1


def test_captures_of_crossing_tables_never_wait_for_each_other_in_a_circle(url: str) -> None:
    endings = race(
        url,
        [(record, capture(f"c{n}", tables=(PLAYBACK, MEMBERS) if n % 2 else (MEMBERS, PLAYBACK))) for n in range(6)],
    )
    assert Counter(ending.error for ending in endings) == {None: 1, "CapturePending": 5}


def test_two_consumers_that_want_the_same_change_tables(url: str) -> None:
    """The lock is per consumer, so here the unique index decides."""
    orders = [(PLAYBACK, MEMBERS), (MEMBERS, PLAYBACK)] * 2
    same = [capture(consumer=f"consumer {n}", tables=order) for n, order in enumerate(orders)]
    endings = race(url, [(record, replace(new, id=f"of{n}")) for n, new in enumerate(same)])
    assert Counter(ending.error for ending in endings) == {None: 1, "UserError": 3}
    assert all("belongs to capture of" in ending.message for ending in endings if ending.error)


def test_threads_that_share_a_store_lose_nothing(store: Store) -> None:
    """Each tries to process the next range until it has managed five; every range must be processed once."""
    threads, each = 4, 5
    start = Barrier(threads)

    def work(name: str) -> None:
        start.wait()
        done = 0
        while done < each:
            position = store.position("daily", PLAYBACK)
            after = position.snapshot_id if position else None
            new = capture(f"{name}-{after}-{done}", after=after, upto=(after or 0) + 1, created_by=name)
            try:
                process(store, new)
            except (CapturePending, CheckpointMoved):
                continue
            done += 1

    with ThreadPoolExecutor(threads) as pool:
        for working in [pool.submit(work, f"thread{n}") for n in range(threads)]:
            working.result()
    history = store.checkpoints("daily")
    assert [c.positions[PLAYBACK].snapshot_id for c in history] == list(range(threads * each, 0, -1))


def test_writers_wait_for_each_other(url: str) -> None:
    endings = race(url, [(many_consumers, f"process {n}") for n in range(4)])
    assert {ending.error for ending in endings} == {None}
    with Store.open(url) as store:
        assert len(store.positions()) == 40


def many_consumers(store: Store, name: str) -> None:
    for n in range(10):
        process(store, capture(f"{name}-{n}", consumer=f"{name}-{n}"))
