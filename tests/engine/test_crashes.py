"""Killed at any moment, a run ends as it would have without: no step is lost, none is run twice, nothing is left."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.engine.dying import NEVER, start_and_work
from tests.engine.support import SUCCEEDED, Place, expression, foreach, long, loop_while, noop, shell, subworkflow
from tests.store.crashes import killed_at

#: How many runs are killed side by side.
AT_ONCE = 6
SMALL = "small"
LARGE = "large"


def pushed(folder: Path) -> Place:
    place = Place.at(folder)
    note = f"echo $step_id ${{i}} >> {folder}/out"
    place.push(
        SMALL,
        shell("a", f"echo a >> {folder}/out; echo n=1 >> $DALSEGNO_OUTPUT", "b"),
        noop("b", "c", params={"text": {"type": "STRING", "value": "${a.n}"}}),
        shell("c", f"echo c >> {folder}/out"),
    )
    place.push("child", shell("inside", f"echo inside >> {folder}/out"))
    place.push(
        LARGE,
        shell("a", f"echo a >> {folder}/out", "each", "sub", "again"),
        foreach("each", [1, 2, 3], [shell("x", note.replace("$step_id", "x"))], "end", concurrency=2),
        subworkflow("sub", "child", "end"),
        loop_while("again", "n < 2", {"n": long(0)}, [noop("y", params={"n": expression("n + 1")})], "end"),
        shell("end", f"echo end >> {folder}/out"),
    )
    return place


EXPECTED = {
    SMALL: Counter(["a", "c"]),
    LARGE: Counter(["a", "x 1", "x 2", "x 3", "inside", "end"]),
}


def left_behind(folder: Path) -> list[str]:
    """The processes of jobs that work in this folder."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{folder}/".encode() in environment.read_bytes():
                found.append(environment.parent.joinpath("cmdline").read_text())
        except OSError:
            continue
    return found


def check(folder: Path, workflow_id: str) -> None:
    """What holds once everything that was started has ended."""
    place = Place.at(folder)
    try:
        run = place.operations.runs.get(workflow_id)
        assert run.status is SUCCEEDED, (run, place.statuses(workflow_id))
        assert run.number == len(place.operations.runs.list(workflow_id))
        assert Counter(place.lines()) == EXPECTED[workflow_id]
        assert set(place.statuses(workflow_id).values()) == {"SUCCEEDED"}
        assert left_behind(folder) == []
    finally:
        place.operations.close()


def crash_and_go_on(folder: Path, workflow_id: str, *, kill_at: int) -> bool:
    folder.mkdir()
    pushed(folder).operations.close()
    was_killed = killed_at(kill_at, start_and_work, str(folder), workflow_id)
    # Whoever asked did not hear an answer, and asks again with the same key.
    killed_at(NEVER, start_and_work, str(folder), workflow_id)
    check(folder, workflow_id)
    return was_killed


def crash_at(folder: Path, workflow_id: str, moments: Iterable[int]) -> list[bool]:
    """Each in a folder of its own, some at a time: most of it is waiting. Whether each came before the end."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda at: crash_and_go_on(folder / str(at), workflow_id, kill_at=at), moments))


def test_killed_at_every_moment(tmp_path: Path) -> None:
    first = 1
    while all(crash_at(tmp_path, SMALL, range(first, first + 2 * AT_ONCE))):
        first += 2 * AT_ONCE


def test_killed_at_some_moments_of_a_larger_run(tmp_path: Path) -> None:
    crash_at(tmp_path, LARGE, random.Random(20261116).sample(range(1, 600), 12))


def test_killed_again_and_again(tmp_path: Path) -> None:
    """Every process that takes over is killed as well, a little later each time."""
    pushed(tmp_path).operations.close()
    kill_at = 40
    while killed_at(kill_at, start_and_work, str(tmp_path), LARGE):
        kill_at += 40
        assert kill_at < 4000
    check(tmp_path, LARGE)
