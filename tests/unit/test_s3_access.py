"""Where the credentials and the address of S3 come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalsegno.iceberg.files import Files
from dalsegno.iceberg.object_files import ObjectFileIO, split
from dalsegno.iceberg.s3_access import S3Access, is_understood

KEYS = {"s3.access-key-id": "id", "s3.secret-access-key": "secret"}
PROFILES = """\
[default]
aws_access_key_id = default-id
aws_secret_access_key = default-secret

[other]
aws_access_key_id = other-id
aws_secret_access_key = other-secret
aws_session_token = other-token
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and nothing of AWS in the environment."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "PROFILE", "REGION", "DEFAULT_REGION", "ENDPOINT_URL"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("ENDPOINT_URL_S3", "WEB_IDENTITY_TOKEN_FILE", "CONFIG_FILE", "SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    return tmp_path


def credentials(properties: dict[str, str]) -> dict[str, str | None]:
    return dict(S3Access.of(properties).credentials)


def test_properties_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from the environment")
    assert credentials(KEYS) == {"access_key_id": "id", "secret_access_key": "secret", "token": None}
    vended = {**KEYS, "s3.session-token": "token"}
    assert credentials(vended)["token"] == "token"


def test_the_environment_is_left_to_the_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws" / "credentials").write_text(PROFILES)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from the environment")
    assert credentials({}) == {}
    assert credentials({"s3.profile-name": "other"})["access_key_id"] == "other-id", "who names a profile wants it"


def test_profiles(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".aws" / "credentials").write_text(PROFILES)
    (home / ".aws" / "config").write_text("[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\n")
    assert credentials({})["access_key_id"] == "default-id"
    assert S3Access.of({}).region == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert credentials({}) == {
        "access_key_id": "other-id",
        "secret_access_key": "other-secret",
        "token": "other-token",
    }
    assert S3Access.of({}).region == "eu-west-2"
    assert S3Access.of({"s3.region": "eu-west-3"}).region == "eu-west-3"


@pytest.mark.parametrize("way", ["role_arn = r", "sso_session = s", "credential_process = p"])
def test_a_profile_that_only_the_aws_sdk_understands(home: Path, way: str) -> None:
    (home / ".aws" / "config").write_text(f"[default]\n{way}\n")
    assert not is_understood({})
    assert is_understood(KEYS)


def test_a_role_is_left_to_pyarrow() -> None:
    assert not is_understood({**KEYS, "s3.role-arn": "arn:aws:iam::1:role/r"})


def test_a_broken_profile_is_passed_over(home: Path) -> None:
    (home / ".aws" / "config").write_text("no section\n")
    assert credentials({}) == {}


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(S3Access.of({**KEYS, "s3.session-token": "secret token"}))


def test_connections_are_shared() -> None:
    assert S3Access.of(KEYS) is S3Access.of(dict(KEYS))
    assert S3Access.of(KEYS) != S3Access.of({**KEYS, "s3.access-key-id": "another"})


def test_who_reads_a_location() -> None:
    assert isinstance(Files.at("s3://bucket/table", KEYS).io, ObjectFileIO)
    assert isinstance(Files.at("s3a://bucket/table", KEYS).io, ObjectFileIO)
    assert not isinstance(Files.at("s3://bucket/a//table", KEYS).io, ObjectFileIO), "obstore takes no such key"
    chosen = {**KEYS, "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    assert not isinstance(Files.at("s3://bucket/table", chosen).io, ObjectFileIO)


def test_a_key_is_taken_as_it_is() -> None:
    assert split("s3://bucket/a b/é?x=1#y%20z") == ("bucket", "a b/é?x=1#y%20z")
