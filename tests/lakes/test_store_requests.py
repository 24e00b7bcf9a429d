"""What captures ask of an object store: few requests, nothing of data files, and nothing left behind."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dalsegno.errors import DalsegnoError
from dalsegno.iceberg import object_files
from dalsegno.iceberg.files import Files
from tests.lakes.object_stores import ObjectStore
from tests.lakes.s3_lake import S3Lake, open_lake
from tests.lakes.store_proxy import Fault, Kind, Request, StoreProxy, rounds, running_store_proxy

#: What may go wrong with a request, as often as a client still has patience for.
PASSING = [
    Fault(Kind.INTERNAL_ERROR, times=2),
    Fault(Kind.SLOW_DOWN, times=3),
    Fault(Kind.TIMEOUT),
    Fault(Kind.TRUNCATED),
    Fault(Kind.LOST_ANSWER),
]


@pytest.fixture(scope="module")
def proxy(moto: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProxy]:
    with running_store_proxy(moto, tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def lake(moto: ObjectStore, proxy: StoreProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Lake]:
    bucket = moto.create_bucket()
    with open_lake(tmp_path_factory.mktemp("lake"), proxy.store, bucket) as opened:
        opened.catalog("lake").pyiceberg.create_namespace("db")
        yield S3Lake(opened, moto, bucket)


def kinds(requests: list[Request]) -> Counter[str]:
    return Counter("COPY" if each.is_copy else each.method for each in requests)


def test_a_capture_of_one_snapshot_and_its_commit(lake: S3Lake, proxy: StoreProxy) -> None:
    table = lake.table("one", appends=1)
    before = lake.store.keys(lake.bucket, "wh/db/one")
    proxy.taken()
    changes = lake.lake.capture(table, consumer="c")
    captured = proxy.taken()
    # Metadata, both manifest lists, the manifest, and that of before: is its partition new? The pin; three files.
    assert kinds(captured) == {"GET": 5, "PUT": 4}, [str(each) for each in captured]
    assert rounds(captured) <= 8
    assert lake.rows(changes) == [1]
    assert len(lake.change_keys()) == 3
    proxy.taken()
    changes.commit()
    committed = proxy.taken()
    # The change table's metadata, a listing, one delete for all; the source's metadata, and its pin.
    assert kinds(committed) == {"GET": 3, "POST": 1, "PUT": 1}, [str(each) for each in committed]
    assert rounds(committed) <= 5
    lake.lake.clean()
    assert lake.change_keys() == []
    added = set(lake.store.keys(lake.bucket, "wh/db/one")) - set(before)
    assert all(key.endswith(".metadata.json") for key in added), "only pins are written into the source"


def test_many_small_manifests_become_one(lake: S3Lake, proxy: StoreProxy) -> None:
    table = lake.table("many", appends=20)
    proxy.taken()
    changes = lake.lake.capture(table, consumer="c")
    captured = proxy.taken()
    assert kinds(captured) == {"GET": 24, "PUT": 4}, [str(each) for each in captured]
    assert lake.rows(changes) == list(range(1, 21))
    assert (changes.files, changes.rows) == (20, 20)
    assert len(lake.change_keys("many")) == 3
    proxy.taken()
    changes.commit()
    assert sum(kinds(proxy.taken()).values()) == 5
    assert lake.change_keys("many") == []


def test_nothing_is_asked_about_a_file_before_it_is_read(lake: S3Lake, proxy: StoreProxy) -> None:
    table = lake.table("heads", appends=2)
    proxy.taken()
    lake.lake.plan(table, consumer="c")
    with_both = lake.lake.capture(table, consumer="c", changes="before_after")
    with_both.commit()
    lake.lake.clean()
    asked = proxy.taken()
    assert "HEAD" not in kinds(asked)
    assert not [each for each in asked if each.method == "PUT" and each.path.endswith("/")], "none stands for a folder"


def test_the_cache_answers_for_what_never_changes(lake: S3Lake, proxy: StoreProxy) -> None:
    table = lake.table("cached", appends=3)
    first = lake.lake.capture(table, consumer="c")
    first.abandon()
    proxy.taken()
    again = lake.lake.capture(table, consumer="c")
    assert not [each for each in proxy.taken() if each.method == "GET" and ".avro" in each.path]
    assert lake.rows(again) == [1, 2, 3]
    again.commit()


def test_without_a_cache(lake: S3Lake, proxy: StoreProxy, tmp_path: Path) -> None:
    table = lake.table("uncached", appends=2)
    settings = lake.lake.settings
    with open_lake(settings.root, proxy.store, lake.bucket, metadata_cache_mb=0, root=tmp_path) as opened:
        changes = opened.capture(table, consumer="c")
        assert lake.rows(changes) == [1, 2]
        changes.commit()
    assert list(tmp_path.iterdir()) == []


def test_a_large_file_is_read_in_pieces(lake: S3Lake, proxy: StoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "_AT_ONCE", 1_000)
    content = bytes(range(250)) * 10
    files = Files.at(f"s3://{lake.bucket}", proxy.store.properties)
    location = f"s3://{lake.bucket}/large"
    files.write(location, content)
    proxy.taken()
    with files.reading(location) as stream:
        assert stream.read(3) == content[:3]
        assert len(proxy.taken()) <= 2
        assert stream.read() == content[3:]
    assert len(proxy.taken()) <= 2
    files.delete(location)


def test_a_cold_capture_loads_little(lake: S3Lake, tmp_path: Path) -> None:
    """PyArrow takes half a second to load, boto3 as much: neither is needed."""
    table = lake.table("cold", appends=1)
    program = (
        "import pickle, sys; from dalsegno import Lake\n"
        "with Lake.open(pickle.load(sys.stdin.buffer)) as lake: lake.capture(sys.argv[1], consumer='c').commit()\n"
        "print({'pyarrow', 'boto3', 'botocore', 's3fs', 'pyiceberg.catalog'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program, table]
    settings = pickle.dumps(lake.lake.settings)
    found = subprocess.run(command, input=settings, cwd=tmp_path, capture_output=True, check=True)
    assert found.stdout.decode().strip() == "set()"


def test_clean_removes_markers_of_folders(lake: S3Lake) -> None:
    changes = lake.lake.capture(lake.table("marked", appends=1), consumer="c")
    folder = lake.change_keys("marked")[0].rpartition("metadata/")[0]
    for key in (folder, f"{folder}metadata/", "wh/icdc/", "wh/icdc/é x%20/"):
        lake.store.client.put_object(Bucket=lake.bucket, Key=key, Body=b"")
    lake.store.client.put_object(Bucket=lake.bucket, Key="wh/icdc/empty", Body=b"")
    changes.commit()
    lake.lake.clean()
    assert lake.change_keys() == ["wh/icdc/empty"], "a file of somebody else's stays"
    lake.store.client.delete_object(Bucket=lake.bucket, Key="wh/icdc/empty")


def test_no_access_to_data_is_needed(lake: S3Lake, proxy: StoreProxy) -> None:
    table = lake.table("blind", appends=3)
    proxy.fail(Fault(Kind.FORBIDDEN, pattern="/data/", times=1_000_000))
    try:
        assert lake.lake.plan(table, consumer="c")
        changes = lake.lake.capture(table, consumer="c", ranges=["id"], partitions=True)
        both = lake.lake.capture(table, consumer="other", start="earliest", changes="before_after")
        assert changes.rows == 3
        changes.commit()
        both.commit()
        lake.lake.clean()
        assert not [each for each in proxy.taken() if each.fault]
    finally:
        proxy.fail()


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.kind.name.lower())
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_a_fault_that_passes(lake: S3Lake, proxy: StoreProxy, method: str, fault: Fault) -> None:
    """Each fault meets the first request of its method in a capture, and in its commit; both succeed all the same."""
    name = f"f_{fault.kind.name.lower()}_{method.lower()}"
    table = lake.table(name, appends=1)
    impatient = {"s3.request-timeout": "1"}
    with open_lake(lake.lake.settings.root, proxy.store, lake.bucket, impatient) as opened:
        proxy.taken()
        try:
            proxy.fail(Fault(fault.kind, method, times=fault.times))
            changes = opened.capture(table, consumer="c")
            proxy.fail(Fault(fault.kind, method, times=fault.times))
            done = changes.commit()
        finally:
            proxy.fail()
        met = [each for each in proxy.taken() if each.fault]
        assert len(met) >= (fault.times if method == "POST" else 2 * fault.times)
    assert done.is_new
    assert done.left_over == ()
    assert lake.change_keys(name) == []


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (Kind.FORBIDDEN, r"icdc.*-m0\.avro"),
        (Kind.INTERNAL_ERROR, r"icdc.*-snap\.avro"),
        (Kind.FORBIDDEN, r"icdc.*\.metadata\.json"),
    ],
)
def test_a_fault_that_stays_leaves_a_capture_to_resume(
    lake: S3Lake, proxy: StoreProxy, kind: Kind, pattern: str
) -> None:
    name = f"stays_{kind.value}_{len(pattern)}"
    table = lake.table(name, appends=1)
    proxy.fail(Fault(kind, "PUT", pattern, times=1_000))
    try:
        with pytest.raises(DalsegnoError):
            lake.lake.capture(table, consumer="c")
    finally:
        proxy.fail()
    changes = lake.lake.capture(table, consumer="c")
    assert changes.is_resumed
    assert lake.rows(changes) == [1]
    changes.commit()
    assert lake.change_keys(name) == []
