"""The servers that tests of lakes rely on do what the tests assume."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lakes.object_stores import ObjectStore


@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_a_conditional_create_is_made_once(server: str, request: pytest.FixtureRequest) -> None:
    from botocore.exceptions import ClientError

    store: ObjectStore = request.getfixturevalue(server)
    bucket = store.create_bucket()
    store.client.put_object(Bucket=bucket, Key="a/b", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        store.client.put_object(Bucket=bucket, Key="a/b", Body=b"second", IfNoneMatch="*")
    assert store.keys(bucket) == ["a/b"]
    assert store.read(bucket, "a/b") == b"first"


def test_versitygw_refuses_a_wrong_secret(versitygw: ObjectStore) -> None:
    from botocore.exceptions import ClientError

    bucket = versitygw.create_bucket()
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        replace(versitygw, secret_key="wrong").keys(bucket)
