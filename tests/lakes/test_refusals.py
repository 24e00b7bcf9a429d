"""What is wrong with the settings of an object store is one clear error, at once, with the line to change."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.errors import StorageRefused
from dalsegno.operations.querying import query
from dalsegno.settings import CatalogSettings, Settings
from tests.lakes.object_stores import ObjectStore


def settings(root: Path, store: ObjectStore, bucket: str) -> Settings:
    catalog = CatalogSettings(
        "prod", uri=f"sqlite:///{root}/catalog.db", warehouse=f"s3://{bucket}/wh", properties=store.properties
    )
    return Settings(root, default_catalog="prod", catalogs={"prod": catalog}, store=f"sqlite:///{root}/dalsegno.db")


def with_table(made: Settings) -> None:
    with Lake.open(made) as lake:
        catalog = lake.catalog("prod").pyiceberg
        catalog.create_namespace("media")
        rows = pa.table({"title": ["Solaris"], "seconds": [600]})
        catalog.create_table("media.playback", rows.schema).append(rows)


@pytest.mark.parametrize(
    ("wrong", "problem", "line"),
    [
        ({"s3.secret-access-key": "wrong"}, "the secret key is wrong", '"s3.secret-access-key"'),
        ({"s3.access-key-id": "nobody"}, "the access key is unknown", '"s3.access-key-id"'),
        ({"s3.region": "eu-west-9"}, "another region", '"s3.region" under [catalogs.prod.properties]'),
        ({"bucket": "no-such-bucket"}, "the bucket does not exist", 'warehouse = "s3://BUCKET/…" in [catalogs.prod]'),
    ],
)
def test_one_clear_error_at_once(
    tmp_path: Path, versitygw: ObjectStore, wrong: dict[str, str], problem: str, line: str
) -> None:
    good = settings(tmp_path, versitygw, versitygw.create_bucket())
    with_table(good)
    catalog = good.catalog("prod")
    properties = {**catalog.properties, **{name: value for name, value in wrong.items() if name != "bucket"}}
    warehouse = f"s3://{wrong['bucket']}/wh" if "bucket" in wrong else catalog.warehouse
    bad = replace(good, catalogs={"prod": replace(catalog, properties=properties, warehouse=warehouse)})
    began = time.monotonic()
    with Lake.open(bad) as lake:
        if "bucket" not in wrong:
            with pytest.raises(StorageRefused, match=problem) as refusal:
                lake.capture("media.playback", consumer="daily")
            assert line in str(refusal.value.hint)
        (report,) = lake.check_catalogs()
    # Spark itself would retry for a minute and a half: it is not even started.
    with pytest.raises(StorageRefused, match=problem) as refusal:
        query(bad, "SELECT * FROM prod.media.playback", limit=1, say=pytest.fail)
    assert line in str(refusal.value.hint)
    assert time.monotonic() - began < 20
    assert not report.works
    found = {each.name: each for each in report.abilities}
    failed = next(each for each in report.abilities if each.works is False)
    assert line in failed.says
    assert found["register"].works is None
    assert versitygw.secret_key not in json.dumps([each.says for each in report.abilities]) + str(refusal.value)


@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_a_check_leaves_nothing_behind(tmp_path: Path, server: str, request: pytest.FixtureRequest) -> None:
    store: ObjectStore = request.getfixturevalue(server)
    bucket = store.create_bucket()
    made = settings(tmp_path, store, bucket)
    with Lake.open(made) as lake:
        (report,) = lake.check_catalogs()
        assert report.works
        assert {each.name for each in report.abilities if each.works is None} == {"read"}
        assert store.keys(bucket) == []
        assert lake.catalog("prod").namespaces() == []
    with_table(made)
    before = store.keys(bucket)
    with Lake.open(made) as lake:
        (report,) = lake.check_catalogs()
        assert all(each.works for each in report.abilities)
        assert store.keys(bucket) == before


def test_a_glue_catalog_needs_its_keys_only_once(tmp_path: Path, moto: ObjectStore) -> None:
    from dalsegno.settings import CatalogType

    bucket = moto.create_bucket()
    made = settings(tmp_path, moto, bucket)
    glue = replace(
        made.catalog("prod"),
        type=CatalogType.GLUE,
        uri=None,
        properties={**moto.properties, "glue.endpoint": moto.endpoint},
    )
    with_table(replace(made, catalogs={"prod": glue}))
    with Lake.open(replace(made, catalogs={"prod": glue})) as lake:
        (report,) = lake.check_catalogs()
        assert report.works, report
        with lake.capture("media.playback", consumer="daily") as changes:
            assert changes.rows == 1
