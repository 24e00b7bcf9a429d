"""What a client of YARN needs, and what it says when that is missing. ``tests/lakes/test_yarn.py`` has a real one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.submission_failures import refusal
from dalsegno.spark.yarn import YarnClient, _application, resource_managers

PREFIX = "yarn.resourcemanager"


def written(folder: Path, name: str = "yarn-site.xml", **site: str) -> Path:
    folder.mkdir(exist_ok=True)
    values = "".join(
        f"<property><name> {key.replace('__', '-').replace('_', '.')} </name>\n<value>{value}</value></property>"
        for key, value in site.items()
    )
    (folder / name).write_text(f"<?xml version='1.0'?><configuration>{values}</configuration>")
    return folder


def client(**environment: object) -> YarnClient:
    return YarnClient({name: str(value) for name, value in environment.items()}, {})


def test_where_resource_managers_are(tmp_path: Path) -> None:
    assert resource_managers([tmp_path]) == [("0.0.0.0", 8032)]
    plain = written(tmp_path / "plain", yarn_resourcemanager_hostname="rm.example")
    assert resource_managers([plain]) == [("rm.example", 8032)]
    named = written(
        tmp_path / "named", yarn_resourcemanager_address="${yarn.resourcemanager.hostname}:8050", yarn_me="${yarn.me}"
    )
    written(named, "core-site.xml", yarn_resourcemanager_hostname="other")
    assert resource_managers([named]) == [("other", 8050)]
    # The first of two folders counts, as on the class path.
    assert resource_managers([plain, named]) == [("rm.example", 8050)]


def test_where_several_resource_managers_are(tmp_path: Path) -> None:
    """With failover, each has a name; a list of names without failover counts for nothing."""
    site = {
        "yarn_resourcemanager_ha_rm__ids": "a, b",
        "yarn_resourcemanager_hostname_a": "one",
        "yarn_resourcemanager_address_b": "two:9000",
    }
    assert resource_managers([written(tmp_path / "off", **site)]) == [("0.0.0.0", 8032)]
    on = written(tmp_path / "on", yarn_resourcemanager_ha_enabled="true", **site)
    assert resource_managers([on]) == [("one", 8032), ("two", 9000)]


def test_without_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="HADOOP_CONF_DIR is not set") as found:
        client().refuse_unusable()
    assert "env: {HADOOP_CONF_DIR:" in str(found.value.hint)
    with pytest.raises(UserError, match=r"no yarn-site\.xml"):
        client(YARN_CONF_DIR=tmp_path).refuse_unusable()
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    with pytest.raises(UserError, match="cannot be read"):
        client(HADOOP_CONF_DIR=tmp_path).refuse_unusable()


def test_a_resource_manager_that_is_away(tmp_path: Path) -> None:
    """Found out in a moment, and not after a quarter of an hour."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        folder = written(tmp_path, yarn_resourcemanager_address=f"127.0.0.1:{port}")
        client(HADOOP_CONF_DIR=folder).refuse_unusable()
    with pytest.raises(PlatformError, match=f"No ResourceManager of YARN answers at 127.0.0.1:{port}") as found:
        client(HADOOP_CONF_DIR=folder).refuse_unusable()
    assert str(folder) in str(found.value.hint)
    with pytest.raises(PlatformError, match="No ResourceManager"):
        client(HADOOP_CONF_DIR=folder).end("dalsegno_x")


def test_a_line_of_the_list_of_applications() -> None:
    """The name of an application is anybody's."""
    line = "application_1794_0012\ta\tRUNNING\tname\t SPARK\t root\t root.default\t FINISHED\t FAILED\t 100%\t N/A"
    found = _application(line)
    assert (found.id, found.state, found.final_state) == ("application_1794_0012", "FINISHED", "FAILED")
    assert found.has_ended
    assert not found.has_succeeded


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            "YarnException: Failed to submit application_1_2 to YARN : Application application_1_2 submitted by user "
            "root to unknown queue: nightly",
            "YARN has no queue 'nightly' for user 'root'.",
        ),
        (
            "Queue root.late is STOPPED. Cannot accept submission of application: application_1_2",
            "YARN's queue 'root.late' is stopped, and accepts no applications.",
        ),
        (
            "IllegalArgumentException: Required executor memory (9216 MB), offHeap memory (0) MB, overhead (921 MB), "
            "and PySpark memory (0 MB) is above the max threshold (6144 MB) of this cluster!",
            "The executor needs more memory",
        ),
        ("SparkException: Keytab file: /k does not exist", "did not accept the login"),
        ("SparkException: Must specify the driver container image", "needs an image"),
    ],
)
def test_why_a_cluster_refuses(said: str, message: str) -> None:
    found = refusal(f"26/11/18 INFO Client: Requesting\nException in thread main: {said}\n\tat org.apache.spark")
    assert found is not None
    assert message in found.message
    assert refusal("Exception in thread main: SparkException: Application application_1_2 finished") is None
