"""One decision per capture: what it needs to know is found out once, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.capture import capturing, decisions
from dalsegno.errors import UserError
from dalsegno.iceberg import pins
from dalsegno.iceberg.catalogs import Catalog, ConcurrentChange, catalog
from dalsegno.model.capture_requests import TableRequest
from dalsegno.model.starts import Earliest
from dalsegno.settings import CatalogSettings
from dalsegno.store.store_reader import StoreReader
from dalsegno.triggers.table_triggers.capture import WatchedTables

ROWS = pa.table({"id": [1, 2]})
TABLE = "db.plays"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as opened:
        tables = opened.catalog("lake").pyiceberg
        tables.create_namespace("db")
        for name in (TABLE, "db.users"):
            tables.create_table(name, ROWS.schema).append(ROWS)
        yield opened


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often histories and ranges were derived, checkpoints read and tables loaded."""
    counts: dict[str, int] = {}

    def count(owner: object, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)
        counts[name] = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(catalog, "history_of")
    count(decisions, "next_increment")
    count(capturing, "increment_between")
    count(StoreReader, "position")
    count(StoreReader, "positions")
    return counts


ONCE = {"history_of": 1, "next_increment": 1, "increment_between": 0, "position": 0, "positions": 1}


@pytest.mark.parametrize("changes", ["added", "before_after"])
def test_a_fresh_capture_finds_everything_out_once(lake: Lake, calls: dict[str, int], changes: str) -> None:
    assert lake.capture(TABLE, consumer="c", changes=changes)
    assert calls == ONCE


def test_a_plan_finds_the_same_out_once(lake: Lake, calls: dict[str, int]) -> None:
    lake.plan(TABLE, consumer="c")
    assert calls == ONCE


def test_positions_are_read_once_for_several_tables(lake: Lake, calls: dict[str, int]) -> None:
    assert lake.capture(TABLE, "db.users", consumer="c")
    assert calls == {**ONCE, "history_of": 2, "next_increment": 2}


def test_a_range_is_derived_again_if_the_pin_had_to_load_the_table_again(
    lake: Lake, calls: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody appends between the decision and the pin: the range stays, and what is said of it is of that moment."""
    appended: list[str] = []
    original = pins._write

    def late(*args: Any) -> Any:
        if not appended:
            lake.catalog("lake").pyiceberg.load_table(TABLE).append(ROWS)
            appended.append(TABLE)
        return original(*args)

    monkeypatch.setattr(pins, "_write", late)
    changes = lake.capture(TABLE, consumer="c")
    assert (changes.rows, changes.has_more) == (2, True)
    assert calls == {**ONCE, "history_of": 2, "increment_between": 1}
    changes.commit()
    assert lake.capture(TABLE, consumer="c").rows == 2


def test_a_plan_a_capture_and_a_watch_decide_alike(lake: Lake) -> None:
    """The same refusal, word for word."""
    lake.capture(TABLE, consumer="c").commit()
    lake.catalog("lake").pyiceberg.load_table(TABLE).delete("id = 1")
    (plan,) = lake.plan(TABLE, consumer="c")
    watch = TableRequest(lake.name(TABLE), "c", start=Earliest(), is_start_for_first=True)
    seen = WatchedTables(lake.context).look([watch])[watch]
    with pytest.raises(Exception, match="not an append") as refused:
        lake.capture(TABLE, consumer="c")
    assert plan.refusal is not None
    assert seen is not None
    assert plan.refusal["message"] == seen.refusal == getattr(refused.value, "message", None)


def test_a_watch_begins_where_an_abandoned_capture_began(lake: Lake) -> None:
    """As the next capture does."""
    first = lake.load(lake.name(TABLE)).history().head
    assert first is not None
    lake.catalog("lake").pyiceberg.load_table(TABLE).append(ROWS)
    lake.capture(TABLE, consumer="c", start=str(first.id)).abandon()
    watch = TableRequest(lake.name(TABLE), "c")
    seen = WatchedTables(lake.context).look([watch])[watch]
    assert seen is not None
    assert seen.rows == lake.capture(TABLE, consumer="c").rows == 2


def test_the_start_of_a_step_counts_for_each_table_that_has_no_checkpoint(lake: Lake) -> None:
    """A source that is added to a step later begins where the step says, though the others have checkpoints."""
    lake.capture(TABLE, consumer="c").commit()
    lake.catalog("lake").pyiceberg.load_table(TABLE).append(ROWS)
    with pytest.raises(UserError, match="a start is chosen once"):
        lake.capture(TABLE, "db.users", consumer="c", start="latest")
    changes = lake.capture(TABLE, "db.users", consumer="c", start="latest", is_start_for_first=True)
    rows = {str(name): captured.details["rows"] for name, captured in changes.tables.items()}
    assert rows == {"lake.db.plays": 2, "lake.db.users": 0}
    again = lake.capture(TABLE, "db.users", consumer="c", start="latest", is_start_for_first=True)
    assert again.id == changes.id


def test_an_unknown_option_is_refused(lake: Lake) -> None:
    with pytest.raises(TypeError, match="no option partition of a capture"):
        lake.capture(TABLE, consumer="c", partition=True)  # type: ignore[call-arg] # the mistake


def test_a_reference_that_moves_main_is_seen(lake: Lake) -> None:
    """What is remembered of a table's history must not outlive a change of that branch."""
    name = lake.name(TABLE)
    opened: Catalog = lake.catalog("lake")
    opened.pyiceberg.load_table(name.identifier).append(ROWS)
    table = lake.load(name)
    head = table.history().head
    assert head is not None and head.parent_id is not None
    moved = opened.set_ref(table, "main", {"snapshot-id": head.parent_id, "type": "branch"})
    found = moved.history().head
    assert found is not None and found.id == head.parent_id
    assert moved.history("main") == lake.load(name).history("main")
    with pytest.raises(ConcurrentChange):
        opened.set_ref(replace(table), "other", {"snapshot-id": head.id, "type": "branch"})


def test_a_checkpoint_under_an_old_name_counts_when_it_is_set(lake: Lake) -> None:
    """Rows that were processed before the table was renamed are not handed out again without a word."""
    lake.capture(TABLE, consumer="c").commit()
    lake.catalog("lake").pyiceberg.rename_table(TABLE, "db.shows")
    with pytest.raises(UserError, match="rows would be handed out again"):
        lake.set_checkpoint("db.shows", consumer="c", to="earliest")
    lake.set_checkpoint("db.shows", consumer="c", to="earliest", reprocess=True)
    assert lake.capture("db.shows", consumer="c").rows == 2
