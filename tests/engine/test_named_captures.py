"""Parameters that name a change table as ``icdc.plays.01``: each step gets the table's real name."""

from __future__ import annotations

from dalsegno import Lake
from dalsegno.operations.run_views import RunView
from tests.engine.support import FAILED, SUCCEEDED, Json, Place, foreach, noop, shell, subworkflow
from tests.engine.test_icdc import icdc, lake
from tests.engine.test_incremental import SCHEMA, append, capture, commit, text

__all__ = ["lake"]


def naming(value: str) -> Json:
    return {"SOURCE_TABLE": text(value), "query": text("SELECT 1 FROM ${SOURCE_TABLE}")}


def tell(place: Place, *then: str, step_id: str = "tell", value: str | None = None) -> Json:
    params = naming(value) if value else {}
    script = f"cd {place.folder}; echo ${{query}} >> out"
    return shell(step_id, script, *then, params=params, retry_policy={"error_retry_limit": 0})


def told(lake: Lake, number: int = 0) -> list[str]:
    """What a step says for each change table of a capture; the newest one first."""
    return [f"SELECT 1 FROM {each.change_table}" for each in lake.store.captures()[number].tables]


def test_down_into_nested_subworkflows(place: Place, lake: Lake) -> None:
    place.push("inner", tell(place))
    place.push("middle", subworkflow("sub", "inner"))
    called = subworkflow("sub", "middle", "commit", params=naming("icdc.plays.01"))
    place.push("w", capture("sub"), called, commit())
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == told(lake)


def test_which_one_is_meant(place: Place, lake: Lake) -> None:
    """The first capture of each table in the order of the workflow, and the second; in loops as well."""
    lake.catalog("lake").pyiceberg.create_table("db.members", SCHEMA)
    both = ("db.plays", "db.members")
    place.push(
        "w",
        capture("again", tables=both),
        capture("each", step_id="again", consumer="again", tables=("db.plays",)),
        foreach(
            "each",
            [1],
            [
                tell(place, "two", step_id="one", value="icdc.plays.01"),
                tell(place, "three", step_id="two", value="icdc.members.01"),
                tell(place, step_id="three", value="icdc.plays.02"),
            ],
            "commit",
        ),
        commit("other"),
        {"step": {**commit(capture_step="again")["step"], "id": "other"}},
    )
    append(lake, 1)
    append(lake, 2, table="db.members")
    assert place.run("w").status is SUCCEEDED, place.operations.runs.get("w").reason
    assert place.lines() == [*told(lake, 1), *told(lake, 0)]


def test_of_an_icdc_step(place: Place, lake: Lake) -> None:
    place.push("w", icdc("tell"), tell(place, value="icdc.plays.01"))
    append(lake, 1)
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["SELECT 1 FROM lake.db.plays_icdc"]


def test_nothing_new(place: Place, lake: Lake) -> None:
    """Who goes on all the same gets an empty name, as from the capture itself."""
    place.push(
        "w", capture("tell", when_nothing_new="continue"), tell(place, "commit", value="icdc.plays.01"), commit()
    )
    assert place.run("w").status is SUCCEEDED
    assert place.lines() == ["SELECT 1 FROM"]


def test_what_was_not_captured(place: Place, lake: Lake) -> None:
    append(lake, 1)
    for value, hint in (
        ("icdc.members.01", "What is captured before it: icdc.plays.01."),
        ("icdc.plays.02", "What is captured before it: icdc.plays.01."),
        ("icdc.plays.00", "What is captured before it: icdc.plays.01."),
    ):
        place.push("w", capture("tell"), tell(place, "commit", value=value), commit())
        run = place.run("w")
        assert run.status is FAILED
        assert f"Parameter 'SOURCE_TABLE' in step 'tell' is '{value}', but that was not captured before." in str(
            run.reason
        )
        assert (place.steps()["tell"].failure or {})["hint"] == hint
    place.push("alone", tell(place, value="icdc.plays.01"))
    place.run("alone")
    assert "Nothing is" in (place.steps("alone")["tell"].failure or {})["hint"]


def test_a_capture_that_did_not_run(place: Place, lake: Lake) -> None:
    """It counts all the same: which table a number means does not depend on conditions."""

    def run(value: str) -> RunView:
        place.push(
            "w",
            noop("begin", "first:1 > 2", "second"),
            capture("second", step_id="first", consumer="first"),
            capture("tell", step_id="second"),
            tell(place, "commit", value=value),
            commit("end:commit__capture_id == ''", capture_step="second"),
            {"step": {**commit(capture_step="first")["step"], "id": "end"}},
        )
        return place.run("w")

    append(lake, 1)
    assert run("icdc.plays.02").status is SUCCEEDED
    assert place.lines() == told(lake)
    append(lake, 2)
    assert "the step that captures it has not run" in str(run("icdc.plays.01").reason)


def test_other_texts_stay_as_they_are(place: Place, lake: Lake) -> None:
    values = ["icdc.plays.1", "icdc.plays.01;", "x.icdc.plays.01", "icdc.a.b.01", "icdc.plays"]
    for number, value in enumerate(values):
        append(lake, number)
        place.push("w", capture("tell"), tell(place, "commit", value=value), commit())
        assert place.run("w").status is SUCCEEDED
    assert place.lines() == [f"SELECT 1 FROM {value}" for value in values]
