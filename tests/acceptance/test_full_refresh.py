"""A full refresh on a real Spark: targets hold what their sources hold, whatever they held before."""

from __future__ import annotations

from uuid import uuid4

import pytest

from dalsegno import Lake
from dalsegno.errors import DataError, UserError
from dalsegno.model.captures import CaptureState
from dalsegno.model.full_refresh import FullRefresh
from dalsegno.model.runs import RunStatus
from dalsegno.operations.undoing import undo
from dalsegno.settings import Settings
from tests.acceptance.test_exactly_once import COUNT, GATE, WRITE, Once, once, workflow

__all__ = ["once"]
pytestmark = pytest.mark.spark


def refreshed(place: Once, name: str, *, empty: tuple[str, ...] = (), trust: tuple[str, ...] = ()) -> RunStatus:
    asked = FullRefresh(frozenset(empty), frozenset(trust))
    return place.operations.runs.finish(place.operations.runs.start(name, full_refresh=asked).id).status


def fresh_name() -> str:
    return f"refresh_{uuid4().hex[:8]}"


def processed(place: Once, *statements: str) -> str:
    """A workflow whose one run has written three rows, of which the source has lost one since."""
    name = fresh_name()
    place.add(1, 2, 3)
    assert place.run(workflow(name, *statements)) is RunStatus.SUCCEEDED
    place.sql("DELETE FROM lake.once.source WHERE id = 2")
    return name


def test_what_the_sources_have_lost_is_gone(once: Once) -> None:
    name = processed(once, "CREATE TABLE IF NOT EXISTS lake.once.stage (id BIGINT, day STRING)", WRITE, COUNT)
    assert once.run(workflow(name, WRITE)) is RunStatus.FAILED
    failure = once.operations.runs.steps(name)[0].failure
    said = str(failure and failure["hint"])
    assert "write 'changes: before_after' under ip_capture" in said
    assert f"dalsegno run {name} --full-refresh" in said
    assert "dalsegno capture" not in said and "checkpoints set" not in said

    once.operations.workflows.push(workflow(name, WRITE, COUNT))
    assert refreshed(once, name) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 3], [2])
    # From here on as before.
    once.add(4)
    assert once.run(workflow(name, WRITE, COUNT)) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 3, 4], [1, 2])


def test_a_refresh_that_fails_is_resumed_by_an_ordinary_run(once: Once) -> None:
    name = processed(once, WRITE, COUNT)
    once.operations.workflows.push(workflow(name, WRITE, GATE, COUNT))
    assert refreshed(once, name) is RunStatus.FAILED
    assert (once.ids(), once.counts()) == ([1, 3], [3])
    once.open_gate()
    assert once.run(workflow(name, WRITE, GATE, COUNT)) is RunStatus.SUCCEEDED
    assert (once.ids(), once.counts()) == ([1, 3], [2])


def test_a_refresh_that_wrote_nothing_is_taken_up_by_an_ordinary_run(once: Once) -> None:
    """The capture of a whole table is there, and nothing says more than itself that rows are to be replaced."""
    name = processed(once, WRITE)
    with Lake.open(once.settings) as lake:
        lake.capture("lake.once.source", consumer=name, start="full")
    assert once.run(workflow(name, WRITE)) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 3]


def test_a_failure_between_emptying_and_writing(once: Once) -> None:
    name = processed(once, WRITE)
    gated = f"{WRITE} WHERE assert_true((SELECT count(*) > 0 FROM lake.once.gate)) IS NULL"
    once.operations.workflows.push(workflow(name, gated))
    assert refreshed(once, name) is RunStatus.FAILED
    assert once.ids() == []
    with Lake.open(once.settings) as lake, pytest.raises(DataError, match="cannot be abandoned"):
        # The checkpoint would stay behind rows that the target has lost.
        lake.abandon(once.pending())
    once.open_gate()
    assert once.run(workflow(name, gated)) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 3]


def test_undo_brings_back_what_was_there(once: Once) -> None:
    name = processed(once, WRITE)
    once.operations.workflows.push(workflow(name, WRITE, GATE))
    assert refreshed(once, name) is RunStatus.FAILED
    assert once.ids() == [1, 3]
    with Lake.open(once.settings) as lake:
        pending = once.pending()
        undo(lake, pending)
        assert once.ids() == [1, 2, 3]
        assert lake.abandon(pending).state is CaptureState.ABANDONED


def test_an_atomic_step_replaces_its_target_at_once(once: Once) -> None:
    once.sql("ALTER TABLE lake.once.target SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    name = fresh_name()
    once.add(1, 2, 3)
    assert once.run(workflow(name, WRITE, more="atomic: true")) is RunStatus.SUCCEEDED
    once.sql("DELETE FROM lake.once.source WHERE id = 2")
    once.operations.workflows.push(workflow(name, WRITE, GATE, more="atomic: true"))
    assert refreshed(once, name) is RunStatus.FAILED
    assert once.ids() == [1, 2, 3], "nobody sees a part of it"
    once.open_gate()
    assert once.restarted(name) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 3]


def test_rows_of_others_are_not_removed(once: Once) -> None:
    name = processed(once, WRITE)
    once.sql("INSERT INTO lake.once.target VALUES (100, 'x')")
    assert refreshed(once, name) is RunStatus.FAILED
    assert "may hold rows of others" in once.reason(name)
    assert once.ids() == [1, 2, 3, 100]
    assert refreshed(once, name, empty=("lake.once.target",)) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 3]


TWO_STEPS = """
Workflow:
  id: {name}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [lake.once.source]}}}}
    - job:
        id: odd
        type: Spark
        retry_policy: {{backoff: {{type: FIXED_BACKOFF, platform_retry_backoff_in_secs: 1}}}}
        spark: {{script: "INSERT INTO lake.once.target SELECT id, day FROM ${{capture.change_table}} WHERE id % 2 = 1"}}
    - job:
        id: even
        type: Spark
        retry_policy: {{backoff: {{type: FIXED_BACKOFF, platform_retry_backoff_in_secs: 1}}}}
        spark: {{script: "INSERT INTO lake.once.target SELECT id, day FROM ${{capture.change_table}} WHERE id % 2 = 0"}}
    - job: {{id: tell, type: Shell, shell: {{script: "true"}}}}
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag:
    capture: [odd, even]
    odd: [tell]
    even: [tell]
    tell: [commit]
"""


def test_steps_that_write_to_one_target_at_once_empty_it_once(once: Once) -> None:
    name = fresh_name()
    text = TWO_STEPS.format(name=name)
    once.add(1, 2, 3, 4)
    assert once.run(text) is RunStatus.SUCCEEDED
    once.sql("DELETE FROM lake.once.source WHERE id = 2")
    assert refreshed(once, name) is RunStatus.FAILED
    assert "a full refresh cannot know which tables it writes to" in once.reason(name)
    assert refreshed(once, name, trust=("tell",)) is RunStatus.SUCCEEDED
    assert once.ids() == [1, 3, 4]


TWO_CAPTURES = """
Workflow:
  id: {name}
  jobs:
    - job: {{id: first, type: IpCapture, ip_capture: {{source_tables: [lake.once.source]}}}}
    - job:
        id: write_first
        type: Spark
        spark: {{script: "INSERT INTO lake.once.target SELECT id, day FROM ${{first.change_table}}"}}
    - job: {{id: commit_first, type: IpCommit, ip_commit: {{capture_step: first}}}}
    - job: {{id: second, type: IpCapture, ip_capture: {{source_tables: [lake.once.stage]}}}}
    - job:
        id: write_second
        type: Spark
        spark: {{script: "INSERT INTO lake.once.target SELECT id, day FROM ${{second.change_table}}"}}
    - job: {{id: commit_second, type: IpCommit, ip_commit: {{capture_step: second}}}}
  dag: sequential
"""


def test_rows_of_a_source_that_is_captured_apart_are_not_removed(once: Once) -> None:
    name = fresh_name()
    once.add(1)
    once.sql("INSERT INTO lake.once.stage VALUES (50, 'x')")
    assert once.run(TWO_CAPTURES.format(name=name)) is RunStatus.SUCCEEDED
    assert refreshed(once, name) is RunStatus.FAILED
    assert "also holds rows of lake.once.stage" in once.reason(name)
    assert once.ids() == [1, 50]
    # Allowed by hand, the second step must not remove what the first one of the same run wrote.
    assert refreshed(once, name, empty=("lake.once.target",)) is RunStatus.FAILED
    assert "also holds rows of lake.once.source" in once.reason(name)
    assert once.ids() == [1]


def test_a_whole_table_beside_a_part_of_another(once: Once) -> None:
    name = fresh_name()
    text = workflow(name, "INSERT INTO lake.once.target SELECT id, day FROM ${capture.change_table_source}").replace(
        "[lake.once.source]", "[lake.once.source, lake.once.stage]"
    )
    once.add(1)
    once.sql("INSERT INTO lake.once.stage VALUES (50, 'x')")
    assert once.run(text) is RunStatus.SUCCEEDED
    once.sql("DELETE FROM lake.once.source")
    assert refreshed(once, name) is RunStatus.SUCCEEDED
    assert once.ids() == []


@pytest.mark.parametrize(
    ("statement", "because"),
    [
        (
            "INSERT INTO IDENTIFIER('lake.once.target') SELECT id, day FROM ${capture.change_table}",
            "cannot be understood",
        ),
        ("INSERT INTO target SELECT id, day FROM ${capture.change_table}", "has no catalog"),
        ("CREATE TABLE IF NOT EXISTS lake.once.made AS SELECT id FROM ${capture.change_table}", "writes nothing where"),
        ("INSERT INTO lake.once.source SELECT 7, 'x' FROM ${capture.change_table}", "which a full refresh reads"),
    ],
)
def test_what_cannot_be_replaced_is_refused(once: Once, statement: str, because: str) -> None:
    name = processed(once, WRITE)
    once.operations.workflows.push(workflow(name, "USE lake.once", statement))
    assert refreshed(once, name) is RunStatus.FAILED
    assert because in once.reason(name)
    assert once.ids() == [1, 2, 3]


def test_a_workflow_that_captures_nothing(settings: Settings, once: Once) -> None:
    once.operations.workflows.push("Workflow: {id: plain, jobs: [{job: {id: a, type: NoOp}}], dag: sequential}")
    with pytest.raises(UserError, match="captures nothing"):
        refreshed(once, "plain")
