"""Messages between transactions: what this version does not know is left for one that does."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import insert

from dalsegno.model.messages import Admit, ChildFinished, EndChildren, EndRun, RestartRun, SignalsArrived, read, written
from dalsegno.model.runs import Ending
from dalsegno.store import Store, runs
from dalsegno.store.run_tables import inbox

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UNKNOWN = {"kind": "from a newer version", "workflow": "w"}


def test_every_kind_is_read_as_it_was_written() -> None:
    for message in (
        Admit("w"),
        ChildFinished("f", "s"),
        SignalsArrived((("f", "s"), ("g", "t"))),
        EndChildren("f", "s", Ending.STOP),
        RestartRun(2, {"params": {"a": 1}}),
        EndRun(Ending.KILL),
    ):
        assert read(written(message)) == message
    assert read(UNKNOWN) is None
    assert read({"kind": "end", "ending": "in a way of tomorrow"}) is None


def test_messages_that_nobody_knows_stay_and_block_nothing(store: Store) -> None:
    with store.database.writing() as connection:
        for _ in range(5):
            connection.execute(insert(inbox).values(run_id="r", message=UNKNOWN, created_at=NOW))
        runs.send(connection, "r", Admit("w"), NOW)
    with store.database.reading() as connection:
        [found] = runs.messages(connection, limit=2)
        assert found["message"] == Admit("w")
    with store.database.writing() as connection:
        assert runs.forget_messages(connection, [found["id"]]) == [found["id"]]
    with store.database.reading() as connection:
        assert runs.messages(connection) == []
        assert len(connection.execute(inbox.select()).all()) == 5
