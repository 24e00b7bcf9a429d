"""Keys that the settings hold reach Spark, and are seen nowhere else: not in arguments, files, logs or errors."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from dalsegno import Lake
from dalsegno.settings import load
from dalsegno.spark.server import running_servers, stop
from tests.lakes.object_stores import ObjectStore

SETTINGS = """
default_catalog = "prod"
[spark.conf]
"spark.eventLog.enabled" = true
"spark.eventLog.compress" = false
"spark.eventLog.dir" = "EVENTS"
[catalogs.prod]
uri = "sqlite:///catalog.db"
warehouse = "s3://BUCKET/wh"
[catalogs.prod.properties]
"s3.endpoint" = "ENDPOINT"
"s3.access-key-id" = "KEY"
"s3.secret-access-key" = "${LAKE_SECRET}"
"""
WORKFLOW = """
Workflow:
  id: copy
  jobs:
    - job:
        id: copy
        type: Spark
        spark: {MORE
          script: "CREATE TABLE prod.media.copy AS SELECT * FROM prod.media.playback; SET; SET -v; SELECT 1 AS n"}
"""


@pytest.mark.spark
@pytest.mark.prove_lakes
@pytest.mark.parametrize("more", ["", "submit: true, "])
def test_a_secret_is_seen_by_nobody(tmp_path: Path, versitygw: ObjectStore, more: str) -> None:
    bucket, secret = versitygw.create_bucket(), versitygw.secret_key
    events = tmp_path / "events"
    events.mkdir()
    text = SETTINGS.replace("BUCKET", bucket).replace("ENDPOINT", versitygw.endpoint)
    text = text.replace("KEY", versitygw.access_key).replace("EVENTS", events.as_uri())
    (tmp_path / "dalsegno.toml").write_text(text)
    (tmp_path / "copy.yaml").write_text(WORKFLOW.replace("MORE", more))
    with Lake.open(load(tmp_path / "dalsegno.toml", environment={"LAKE_SECRET": secret})) as lake:
        catalog = lake.catalog("prod").pyiceberg
        catalog.create_namespace("media")
        rows = pa.table({"title": ["Solaris"], "seconds": [600]})
        catalog.create_table("media.playback", rows.schema).append(rows)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment["LAKE_SECRET"] = secret
    said = ""
    try:
        with watched(secret) as seen:
            for words in (["push", "copy.yaml"], ["run", "copy"], ["show", "copy", "--json"]):
                command = [str(Path(sys.executable).with_name("dalsegno")), *words]
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
                )
                said += done.stdout + done.stderr
                assert done.returncode == 0, said
    finally:
        for folder, _ in list(running_servers(tmp_path)):
            stop(folder)
    assert seen == []
    assert any("copy" in key for key in versitygw.keys(bucket)), "Spark wrote with the key"
    assert list(events.rglob("*")), "there is an event log to look into"
    assert secret not in said
    holding = [str(file) for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
    assert holding == []


@contextmanager
def watched(secret: str) -> Iterator[list[str]]:
    """The arguments of processes in which a secret is seen while the block runs."""
    seen: list[str] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = file.read_bytes()
                except OSError:
                    continue
                if secret.encode() in words:
                    seen.append(words.decode(errors="replace"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
