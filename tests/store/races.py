"""Several that do something to one store at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any

from sqlalchemy import event

from dalsegno.errors import CapturePending, DalsegnoError
from dalsegno.store import Store
from tests.processes import PROCESSES

#: A function of a store, and its other arguments.
Act = tuple[Callable[..., object], *tuple[Any, ...]]

_barrier: Barrier | None = None


@dataclass(frozen=True)
class Ending:
    """What one of them met; errors as text, since exceptions do not travel well between processes."""

    error: str | None = None
    message: str = ""
    capture_id: str | None = None


def ending(store: Store, act: Act) -> Ending:
    try:
        act[0](store, *act[1:])
    except DalsegnoError as error:
        held = error.capture_id if isinstance(error, CapturePending) else None
        return Ending(error.code, str(error), held)
    return Ending()


def race(url: str, acts: list[Act]) -> list[Ending]:
    """Let each act start in a process of its own when all of them have opened the store."""
    barrier = PROCESSES.Barrier(len(acts))
    with ProcessPoolExecutor(len(acts), PROCESSES, initializer=_remember, initargs=(barrier,)) as pool:
        running = [pool.submit(_run, url, act) for act in acts]
        return [racer.result(timeout=60) for racer in running]


def _run(url: str, act: Act) -> Ending:
    with Store.open(url) as store:
        assert _barrier is not None
        _barrier.wait(timeout=30)
        return ending(store, act)


def _remember(barrier: Barrier) -> None:
    global _barrier  # noqa: PLW0603 (a barrier can only be handed to a process when it starts)
    _barrier = barrier


def overlap(one: Store, first: Act, other: Store, second: Act) -> Ending:
    """Run the first up to its COMMIT, let the second try to get past it, and tell what that one met."""
    with ThreadPoolExecutor(1) as pool:
        started: list[Future[Ending]] = []

        @event.listens_for(one.database.engine, "commit", once=True)
        def about_to_commit(connection: object) -> None:
            started.append(pool.submit(ending, other, second))
            # It must be waiting for us; if nothing makes it wait, this is ample time to do its harm.
            wait(started, timeout=0.2)

        assert ending(one, first).error is None
        return started[0].result(timeout=30)
