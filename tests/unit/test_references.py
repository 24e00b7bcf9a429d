"""Files that workflows refer to: which are read, and which are not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import fsspec
import pytest

from dalsegno.errors import PlatformError, UnknownName, UserError
from dalsegno.operations.backup import back_up
from dalsegno.operations.references import ReferencedFiles
from dalsegno.settings import Settings
from dalsegno.spec.documents import BYTES
from dalsegno.spec.files import Reference, references, resolve_files, with_files
from dalsegno.spec.workflows import read
from dalsegno.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "flows"
    (found / "sql").mkdir(parents=True)
    (found / "my.sql").write_text("SELECT ${a}\n", encoding="utf-8")
    (found / "sql" / "inner.sql").write_bytes(b"\xef\xbb\xbfSELECT 2")
    (tmp_path / "secret").write_text("do not read me", encoding="utf-8")
    return found


def located(folder: Path, location: str) -> ReferencedFiles:
    return ReferencedFiles.beside(folder, Settings(root=folder, files_location=location))


def test_texts() -> None:
    seen: list[Reference] = []

    def content(reference: Reference) -> str:
        seen.append(reference)
        return "$S3{not again}"

    assert resolve_files("a $S3{ x y.sql } b $$S3{z} ${c} $FILE{d} $S4{e}", content) == (
        "a $S3{not again} b $$S3{z} ${c} $S3{not again} $S4{e}"
    )
    assert seen == [Reference("S3", "x y.sql"), Reference("FILE", "d")]


def test_whole_definitions(folder: Path) -> None:
    text = """
Workflow:
  id: w
  q: $S3{my.sql}
  jobs:
    - foreach:
        id: f
        loop_params: {i: [1]}
        jobs:
          - job:
              id: a
              type: Spark
              spark: {script: '-- first; $FILE{sql/inner.sql}', args: ['$S3{my.sql}']}
              env: {X: '$GS{my.sql}'}
              '!e': "'$S3{expressions are left alone}'"
"""
    definition = read(text).definition
    assert list(references(definition)) == [
        Reference("S3", "my.sql"),
        Reference("FILE", "sql/inner.sql"),
        Reference("GS", "my.sql"),
    ]
    pinned = with_files(definition, located(folder, "."))
    assert pinned.workflow.params["q"].value == "SELECT ${a}\n"
    inner = next(step for step in pinned.workflow.all_steps() if step.id == "a")
    assert inner.params["spark"].value["script"].value == "-- first; SELECT 2"
    assert inner.params["spark"].value["args"].value == ["SELECT ${a}\n"]
    assert inner.params["env"].value == {"X": "SELECT ${a}\n"}
    assert list(references(pinned)) == []


def test_where_names_begin(folder: Path) -> None:
    assert located(folder, "sql")(Reference("FILE", "inner.sql")) == "SELECT 2"
    memory = fsspec.filesystem("memory")
    memory.pipe("/flows/far.sql", b"SELECT 3")
    far = located(folder, "memory://flows/")
    assert far(Reference("S3", "far.sql")) == "SELECT 3"
    address = (folder / "sql").as_uri()
    assert located(folder, address)(Reference("S3", "inner.sql")) == "SELECT 2"


@pytest.mark.parametrize("name", ["../secret", "sql/../../secret", "/etc/hostname", "file:///etc/hostname", "link"])
def test_nothing_outside_is_read(folder: Path, name: str) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(UserError, match="leads out of"):
        located(folder, ".")(Reference("FILE", name))


def test_nothing_above_an_address_is_read() -> None:
    with pytest.raises(UserError, match="leads out of"):
        located(Path(), "memory://flows")(Reference("S3", "../far.sql"))


def test_what_cannot_be_read(folder: Path) -> None:
    read_file = located(folder, ".")
    with pytest.raises(UnknownName, match="files_location"):
        read_file(Reference("S3", "none.sql"))
    with pytest.raises(UnknownName, match="is not there"):
        located(Path(), "memory://flows")(Reference("S3", "none.sql"))
    with pytest.raises(UserError, match="expected s3://"):
        read_file(Reference("S3", "gs://bucket/x"))
    (folder / "large").write_bytes(b"x" * (BYTES + 1))
    with pytest.raises(UserError, match="larger than"):
        read_file(Reference("FILE", "large"))
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        read_file(Reference("FILE", "binary"))
    with pytest.raises(PlatformError, match="cannot be read"):
        located(folder, "nowhere://flows")(Reference("S3", "x.sql"))


class Objects(BaseHTTPRequestHandler):
    """One object, as S3 and Google Cloud Storage hand it out; whoever asks must have signed for S3."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, data = self.path.partition("?")[0], b"SELECT 'far away'"
        is_signed = self.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential=somebody/")
        found = (path == "/bucket/sql/far.sql" and is_signed) or path == "/storage/v1/b/bucket/o/sql%2Ffar.sql"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(data) if found else 0))
        self.end_headers()
        if found and self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def object_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Objects)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield address
    server.shutdown()
    server.server_close()


def test_s3(object_store: str, folder: Path) -> None:
    assert located(folder, ".")(Reference("S3", "s3://bucket/sql/far.sql")) == "SELECT 'far away'"
    far = located(folder, "s3://bucket/sql")
    assert far(Reference("S3", "far.sql")) == "SELECT 'far away'"
    with pytest.raises(UnknownName, match=r"s3://bucket/sql/other\.sql, which is not there"):
        far(Reference("S3", "other.sql"))


def test_google_cloud(object_store: str, folder: Path) -> None:
    """The settings may name another server."""
    far = located(folder, f"gs://anonymous@bucket/sql?scheme=http&endpoint_override={quote(object_store)}")
    assert far(Reference("GS", "far.sql")) == "SELECT 'far away'"
    with pytest.raises(UnknownName):
        far(Reference("GS", "none"))


@pytest.mark.parametrize("location", [".", "s3://bucket/sql"])
@pytest.mark.parametrize(
    "name",
    [
        "s3://bucket/sql/far.sql?scheme=http&endpoint_override={server}",
        "s3://bucket/sql/far.sql?",
        "s3://bucket/sql/far.sql#x",
        "s3://key:secret@bucket/sql/far.sql",
        "s3://bucket@{server}/sql/far.sql",
        "s3a://bucket/x::file:///etc/hostname",
    ],
)
def test_a_reference_names_no_server(object_store: str, folder: Path, location: str, name: str) -> None:
    with pytest.raises(UserError, match="more than the place of a file"):
        located(folder, location)(Reference("S3", name.format(server=object_store)))


@pytest.mark.parametrize("name", ["far.sql?endpoint_override={server}", "far.sql#x", "x::other.sql"])
def test_a_relative_reference_names_no_server(object_store: str, folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="more than the place of a file"):
        located(folder, "s3://bucket/sql")(Reference("S3", name.format(server=object_store)))


@pytest.mark.parametrize("name", ["..%2Fsecret", "%2e%2e/secret", "link"])
def test_nothing_outside_of_an_address_of_a_folder_is_read(folder: Path, name: str) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(UserError):
        located(folder, folder.as_uri())(Reference("S3", name))


@pytest.mark.parametrize("name", ["dalsegno.toml", ".dalsegno/dalsegno.db", "link", "copy.sql"])
def test_nothing_of_dalsegnos_own_is_read(folder: Path, name: str) -> None:
    with Store.open(f"sqlite:///{folder}/.dalsegno/dalsegno.db") as store:
        back_up(store, folder / "copy.sql")
    (folder / "dalsegno.toml").write_text("secrets = {a = 'b'}")
    (folder / "link").symlink_to(folder / "dalsegno.toml")
    with pytest.raises(UserError, match="dalsegno's own"):
        located(folder, ".")(Reference("FILE", name))
