"""Whatever the script, the fault and what people do: each captured row is in the target once, or a run says why.

A sample is run with all tests. Many more: ``make prove-exact``, see CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno.model.runs import RunStatus
from dalsegno.settings import Settings
from tests.conftest import warm_spark
from tests.exact.oracle import Hole
from tests.exact.place import Place
from tests.exact.play import Play
from tests.exact.protections import NEEDED_FOR, PROTECTIONS, switched_off
from tests.exact.scenarios import directed, scenario
from tests.services.faulty_proxy import FaultyProxy, running_proxy
from tests.services.rest_catalog import RestCatalog

pytestmark = pytest.mark.spark

_SETTINGS = """
[catalogs.lake]
uri = "sqlite:///.dalsegno/catalog.db"
warehouse = ".dalsegno/warehouse"

[catalogs.rest]
type = "rest"
uri = "{uri}"
"""
#: How many scenarios are played to show that a protection is needed.
_TRIES = 8


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        first, most = (metafunc.config.getoption(name) for name in ("--first-scenario", "--scenarios"))
        metafunc.parametrize("number", range(first, first + most))
    if "rest_number" in metafunc.fixturenames:
        first, most = (metafunc.config.getoption(name) for name in ("--first-scenario", "--rest-scenarios"))
        metafunc.parametrize("rest_number", range(first, first + most))


@pytest.fixture(scope="module")
def proxy(rest_catalog: RestCatalog) -> Iterator[FaultyProxy]:
    with running_proxy(rest_catalog.uri) as running:
        yield running


@pytest.fixture(scope="module")
def settings(
    proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Settings]:
    folder: Path = tmp_path_factory.mktemp("exact")
    (folder / "dalsegno.toml").write_text(_SETTINGS.format(uri=proxy.uri))
    with warm_spark(folder, pytestconfig) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def place(settings: Settings, proxy: FaultyProxy) -> Iterator[Place]:
    made = Place(settings, proxy)
    made.sql("CREATE NAMESPACE IF NOT EXISTS lake.db", "CREATE NAMESPACE IF NOT EXISTS rest.db")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def without(request: pytest.FixtureRequest) -> Iterator[None]:
    """``--without NAME``: play without one of the protections."""
    name = request.config.getoption("--without")
    if not name:
        yield
        return
    with switched_off(name):
        yield


def test_a_scenario(place: Place, number: int, record_property: Callable[[str, object], None]) -> None:
    played(Play(place, scenario(number), "lake"), record_property)


@pytest.mark.rest
def test_a_scenario_with_an_odd_catalog(
    place: Place, rest_number: int, record_property: Callable[[str, object], None]
) -> None:
    played(Play(place, scenario(rest_number, is_rest=True), "rest"), record_property)


@pytest.mark.parametrize("name", PROTECTIONS)
def test_each_protection_is_needed(place: Place, name: str, request: pytest.FixtureRequest) -> None:
    """Without it, a row is doubled or lost, or nobody can go on."""
    if not request.config.getoption("--each-protection"):
        pytest.skip("with --each-protection only")
    is_rest, words = NEEDED_FOR[name]
    with switched_off(name):
        for number in range(1, _TRIES + 1):
            play = Play(place, directed(number, *words), "rest" if is_rest else "lake")
            try:
                play.play()
            except Hole as hole:
                print(f"without {name}: {hole}\n" + "\n".join(play.steps))  # noqa: T201 - for -s
                return
    pytest.fail(f"all was exact without {name}: {words}")


def played(play: Play, record_property: Callable[[str, object], None]) -> None:
    try:
        play.play()
    except BaseException as error:
        error.add_note("\n".join(play.steps))
        raise
    told = play.scenario
    for name, value in (
        ("form", told.form.name),
        ("fault", told.fault.name),
        ("action", told.action.name),
        ("wrapping", told.wrapping.name),
        ("happened", play.has_fault_happened),
    ):
        record_property(name, value)


_LATE = """
Workflow:
  id: {name}
  jobs:
    - job: {{id: capture, type: IpCapture, ip_capture: {{source_tables: [rest.db.{name}_source]}}}}
    - job:
        id: write
        type: Spark
        retry_policy: {{error_retry_limit: 0, platform_retry_limit: 0}}
        spark:
          conf: {{spark.wap.branch: side}}
          script: "{script}"
    - job: {{id: commit, type: IpCommit, ip_commit: {{capture_step: capture}}}}
  dag: sequential
"""
_REPLACED = (
    "CREATE OR REPLACE TABLE <t> TBLPROPERTIES ('format-version' = '<version>') AS SELECT 1 AS id; "
    "INSERT INTO <t> SELECT id FROM ${capture.change_table}"
)
_APPENDED = "INSERT INTO <t> SELECT id FROM ${capture.change_table}"


@pytest.mark.rest
@pytest.mark.parametrize(("form", "version"), [(_REPLACED, 1), (_APPENDED, 1), (_REPLACED, 2)])
def test_a_commit_that_arrives_when_nobody_expects_it_any_more(place: Place, form: str, version: int) -> None:
    """What format version 1 cannot keep from arriving, nobody may execute again."""
    name = f"late_{uuid4().hex[:8]}"
    source, target = f"rest.db.{name}_source", f"rest.db.{name}_target"
    allowed = "" if form == _REPLACED else ", 'write.wap.enabled' = 'true'"
    place.sql(
        f"CREATE TABLE {source} (id INT) USING iceberg",
        f"INSERT INTO {source} VALUES (2)",
        f"CREATE TABLE {target} (id INT) USING iceberg TBLPROPERTIES ('format-version' = '{version}'{allowed})",
        f"INSERT INTO {target} VALUES (1)",
    )
    script = form.replace("<t>", target).replace("<version>", str(version))
    place.operations.workflows.push(_LATE.format(name=name, script=script))
    place.proxy.arm("kept", 1)
    assert place.operations.runs.finish(place.operations.runs.start(name, {}).id).status is RunStatus.FAILED
    assert place.proxy.has_happened
    run = place.operations.runs.finish(place.operations.runs.start(name, {}).id)
    place.proxy.disarm()
    if version > 1:
        assert run.status is RunStatus.SUCCEEDED, place.said(run)
        assert place.sql(f"SELECT id FROM {target} ORDER BY id") == [{"id": 1}, {"id": 2}]
        return
    assert "may still accept the statement's commit" in place.said(run)
    # It has arrived, which tells; what follows it is still to be executed.
    assert place.operations.runs.finish(place.operations.runs.start(name, {}).id).status is RunStatus.SUCCEEDED
    branch = "" if form == _REPLACED else ".branch_side"
    assert place.sql(f"SELECT id FROM {target}{branch} ORDER BY id") == [{"id": 1}, {"id": 2}]
