"""What each engine gets is decided by a catalog's settings, and by nothing else."""

from __future__ import annotations

import pytest

from dalsegno.iceberg.object_stores import (
    ObjectStore,
    duckdb_setup,
    is_cloud_variable,
    pyiceberg_properties,
    spark_properties,
    spark_variables,
    storage_options,
    stores_of,
)
from dalsegno.settings import CatalogSettings, CatalogType
from dalsegno.spark.jars import BUNDLES, CHECKSUMS, bundles
from dalsegno.storage_problems import storage_problem

S3_IO, GCS_IO, ADLS_IO = BUNDLES
KEYS = {"s3.access-key-id": "me", "s3.secret-access-key": "it's a secret"}


def catalog(warehouse: str | None = "s3://lake/wh", kind: str = "sql", **properties: str) -> CatalogSettings:
    named = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    return CatalogSettings("prod", CatalogType(kind), uri="sqlite://", warehouse=warehouse, properties=named)


@pytest.mark.parametrize(
    ("warehouse", "kind", "stores"),
    [
        ("s3://lake/wh", "sql", [ObjectStore.S3]),
        ("s3a://lake/wh", "hive", [ObjectStore.S3]),
        ("gs://lake/wh", "sql", [ObjectStore.GCS]),
        ("abfss://c@a.dfs.core.windows.net/wh", "sql", [ObjectStore.ADLS]),
        ("hdfs://host/wh", "hive", []),
        ("file:/wh", "sql", []),
        ("/s3/wh", "sql", []),
        ("analytics", "rest", []),
        (None, "glue", [ObjectStore.S3]),
    ],
)
def test_the_store_follows_from_the_warehouse(warehouse: str | None, kind: str, stores: list[ObjectStore]) -> None:
    settings = catalog(warehouse, kind)
    assert list(stores_of(settings)) == stores
    classes = {ObjectStore.S3: S3_IO, ObjectStore.GCS: GCS_IO, ObjectStore.ADLS: ADLS_IO}
    assert spark_properties(settings, {}).get("io-impl") == (classes[stores[0]] if stores else None)


def test_a_rest_catalog_keeps_what_its_server_sends() -> None:
    settings = catalog("analytics", "rest", s3__region="eu-west-1")
    assert spark_properties(settings, {"AWS_REGION": "us-west-2"}) == {"client.region": "eu-west-1"}
    assert pyiceberg_properties(settings, {"AWS_REGION": "us-west-2"}) == {}
    conf = {f"spark.sql.catalog.prod.{name}": value for name, value in spark_properties(settings, {}).items()}
    assert bundles(conf) == [BUNDLES[S3_IO]]


def test_region_and_endpoint_come_from_the_environment_where_the_settings_are_silent() -> None:
    found = {"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": "http://store:9000"}
    assert pyiceberg_properties(catalog(), found) == {"s3.region": "eu-west-1", "s3.endpoint": "http://store:9000"}
    spark = spark_properties(catalog(), found)
    assert (spark["client.region"], spark["s3.endpoint"], spark["s3.path-style-access"]) == (
        "eu-west-1",
        "http://store:9000",
        "true",
    )
    written = catalog(s3__region="here", s3__endpoint="http://mine")
    assert pyiceberg_properties(written, found) == {}
    assert spark_properties(written, found)["client.region"] == "here"
    # PyIceberg asks AWS where a bucket is, which leads nowhere with a server of one's own.
    assert pyiceberg_properties(catalog(s3__endpoint="http://mine"), {}) == {"s3.region": "us-east-1"}
    assert pyiceberg_properties(catalog(), {}) == {}


def test_virtual_hosts_are_spelt_differently() -> None:
    settings = catalog(s3__endpoint="https://store", s3__path_style_access="false")
    assert pyiceberg_properties(settings, {})["s3.force-virtual-addressing"] == "true"
    assert spark_properties(settings, {})["s3.path-style-access"] == "false"


def test_credentials_are_written_once() -> None:
    glue = CatalogSettings("prod", CatalogType.GLUE, warehouse="s3://lake/wh", properties=KEYS)
    found = pyiceberg_properties(glue, {"AWS_REGION": "eu-west-1"})
    assert (found["client.access-key-id"], found["client.secret-access-key"]) == ("me", "it's a secret")
    assert found["client.region"] == "eu-west-1"
    assert spark_variables({"prod": glue}) == {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "it's a secret"}
    by_client = catalog(client__access_key_id="me", client__secret_access_key="x")
    assert spark_properties(by_client, {})["s3.access-key-id"] == "me"
    assert pyiceberg_properties(by_client, {})["s3.secret-access-key"] == "x"
    # A token of the environment does not belong to written keys.
    assert "s3.session-token" not in spark_properties(by_client, {"AWS_SESSION_TOKEN": "t"})


def test_engines_that_read_files_themselves() -> None:
    settings = CatalogSettings(
        "prod", uri="sqlite://", warehouse="s3://lake/wh", properties={**KEYS, "s3.endpoint": "http://store:9000"}
    )
    options = storage_options(settings, {})
    assert options["aws_endpoint_url"] == "http://store:9000"
    assert options["aws_allow_http"] == "true"
    assert options["aws_secret_access_key"] == "it's a secret"
    shown = "\n".join(duckdb_setup(settings, {}))
    assert "secret'" not in shown
    assert "ENDPOINT 'store:9000', URL_STYLE 'path', USE_SSL false" in shown
    assert "SECRET 'it''s a secret'" in "\n".join(duckdb_setup(settings, {}, with_secrets=True))
    assert "PROVIDER credential_chain" in "\n".join(duckdb_setup(catalog(), {}))
    assert duckdb_setup(catalog("/wh"), {}) == ()


def test_a_driver_gets_the_variables_of_the_clouds_that_it_needs() -> None:
    lake = {"prod": catalog(), "local": catalog("/wh")}
    assert is_cloud_variable("AWS_SESSION_TOKEN", lake)
    assert not is_cloud_variable("AZURE_CLIENT_SECRET", lake)
    assert not is_cloud_variable("AWS_SESSION_TOKEN", {"local": catalog("/wh")})


def test_bundles_are_fetched_for_what_catalogs_use() -> None:
    prefix = "spark.sql.catalog.prod"
    assert bundles({f"{prefix}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO", f"{prefix}.s3.endpoint": "x"}) == []
    assert bundles({f"{prefix}.warehouse": "gs://lake"}) == [BUNDLES[GCS_IO]]
    assert bundles({f"{prefix}.warehouse": "/wh", f"{prefix}.uri": "jdbc:sqlite:x"}) == []
    assert bundles({"spark.app.name": "s3://"}) == []
    assert set(BUNDLES.values()) <= CHECKSUMS.keys()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("s3://b/k: 403 Forbidden, SignatureDoesNotMatch, The request", "the secret key is wrong"),
        (
            "(S3Exception) The specified bucket does not exist (Service: S3, Status Code: 404",
            "the bucket does not exist",
        ),
        ("the region &#34;eu-west-9&#34; is wrong; expecting", "the bucket is in another region"),
        ("s3://b/k: 403 Forbidden", "there are no credentials"),
        ("s3://b/k: 403 Forbidden, AccessDenied, Access Denied", "the credentials do not have the right to do it"),
        (
            "Cannot initialize FileIO: Cannot find constructor for interface org.apache.iceberg.io.FileIO",
            "Spark lacks the jar with the libraries of the object store",
        ),
    ],
)
def test_what_stores_say(said: str, problem: str) -> None:
    found = storage_problem(said)
    assert found is not None
    assert found.problem == problem


@pytest.mark.parametrize("said", ["503 Slow Down", "error sending request", "500 Internal Server Error, InternalError"])
def test_what_a_retry_may_mend_is_not_refused(said: str) -> None:
    assert storage_problem(said) is None
