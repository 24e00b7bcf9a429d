"""What tests share: one Spark session and one of each server per process, started when a test asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dalsegno.settings import Settings, load
from dalsegno.spark.java import find_java
from tests.lakes.hive import HiveMetastore, running_metastore
from tests.lakes.moto import running_moto
from tests.lakes.object_stores import ObjectStore
from tests.lakes.versitygw import go, program, running_versitygw
from tests.services.postgres import Postgres, running_postgres
from tests.services.rest_catalog import S3_FILE_IO, RestCatalog, class_path, running_rest_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Every Spark of the tests lives for a minute or two: what a compiler does for longer lives is not worth its time then.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: For tables of a few rows, it takes longer to generate code and to plan anew than to do the work.
FOR_FEW_ROWS = (
    "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN "
    "-Dspark.sql.adaptive.enabled=false -Dspark.sql.shuffle.partitions=1"
)
os.environ.setdefault("JAVA_TOOL_OPTIONS", f"{SHORT_LIVED} {FOR_FEW_ROWS}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--histories", type=int, default=12, help="how many random histories tests/iceberg makes up")
    parser.addoption("--rewrites", type=int, default=2, help="how many random histories tests/rewrite makes up")
    parser.addoption("--first-rewrite", type=int, default=1, help="the seed of the first; each one's is one more")
    parser.addoption("--scenarios", type=int, default=8, help="how many scenarios tests/exact makes up")
    parser.addoption("--rest-scenarios", type=int, default=2, help="how many of them have a catalog that acts oddly")
    parser.addoption("--without", default="", help="the protection that tests/exact switches off")
    parser.addoption("--each-protection", action="store_true", help="whether tests/exact tries without each of them")
    parser.addoption("--first-scenario", type=int, default=1, help="the number of the first")
    parser.addoption("--fires", type=int, default=5, help="how many runs tests/acceptance/test_under_fire.py makes")
    parser.addoption("--kills", type=int, default=8, help="how many nodes tests/chaos kills")
    parser.addoption("--storm", type=int, default=1, help="the seed of what befalls nodes in tests/chaos")
    parser.addoption("--first-history", type=int, default=1, help="the seed of the first; each one's is one more")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``make prove-lakes`` runs, unless it is asked for."""
    if "prove_lakes" in str(config.getoption("markexpr")):
        return
    left_out = [item for item in items if item.get_closest_marker("prove_lakes")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def uncaptured(config: pytest.Config) -> AbstractContextManager[None]:
    """Let what follows write to the terminal: fetching jars takes a while the first time, and says so."""
    captures = config.pluginmanager.getplugin("capturemanager")
    shown: AbstractContextManager[None] = captures.global_and_fixture_disabled() if captures else nullcontext()
    return shown


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> Iterator[SparkSession]:
    """A session with Iceberg, the JDBC drivers and S3; `tests.services.catalogs.add_catalog` adds catalogs."""
    from dalsegno.spark.jars import BUNDLES, POSTGRES_JDBC, SQLITE_JDBC
    from tests.local_spark import local_session

    with uncaptured(pytestconfig):
        packages = (SQLITE_JDBC, POSTGRES_JDBC, BUNDLES[S3_FILE_IO])
        session = local_session({}, app_name="dalsegno-tests", packages=packages)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; `postgres.create_database()` for a database of one's own."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def rest_catalog(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    """An Iceberg REST catalog; it is shared, so each test takes a namespace of its own."""
    with uncaptured(pytestconfig):
        class_path(find_java())
    with running_rest_catalog(tmp_path_factory.mktemp("rest-catalog")) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """S3 and Glue; `moto.create_bucket()` for a bucket of one's own. It accepts any secret."""
    with running_moto(tmp_path_factory.mktemp("moto")) as store:
        yield store


@pytest.fixture(scope="session")
def rest_catalog_on_s3(
    pytestconfig: pytest.Config, moto: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestCatalog]:
    """An Iceberg REST catalog with its files on S3; clients bring credentials of their own."""
    with uncaptured(pytestconfig):
        class_path(find_java(), on_s3=True)
    warehouse = f"s3://{moto.create_bucket()}/lake"
    with running_rest_catalog(tmp_path_factory.mktemp("rest-on-s3"), warehouse, moto.properties) as catalog:
        yield catalog


@pytest.fixture(scope="session")
def hive_metastore(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A Hive metastore 3; it is shared, so each test takes a database of its own."""
    with ExitStack() as stack:
        with uncaptured(pytestconfig):
            metastore = stack.enter_context(running_metastore(tmp_path_factory.mktemp("hive")))
        yield metastore


@pytest.fixture(scope="session")
def versitygw(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """S3 that verifies signatures; skipped where it was not built, and cannot be."""
    is_asked_for = "prove_lakes" in str(pytestconfig.getoption("markexpr"))
    if not program().exists() and (go() is None or not is_asked_for):
        pytest.skip("versitygw was not built: make prove-lakes builds it, with Go")
    with ExitStack() as stack:
        with uncaptured(pytestconfig):
            store = stack.enter_context(running_versitygw(tmp_path_factory.mktemp("versitygw")))
        yield store


@contextmanager
def warm_spark(root: Path, config: pytest.Config) -> Iterator[Settings]:
    """The settings of a project with a warm Spark server, which is stopped in the end."""
    from dalsegno.spark.server import running_servers, stop
    from dalsegno.steps.spark.sessions import local_server

    loaded = load(working_folder=root, environment={})
    with uncaptured(config):
        local_server(loaded).ensure()
    yield loaded
    for folder, _ in list(running_servers(root)):
        stop(folder)
