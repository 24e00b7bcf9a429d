"""What tests ask of an S3 server, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

REGION = "us-east-1"


@dataclass(frozen=True)
class ObjectStore:
    """A server that speaks S3 on loopback."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = REGION

    @cached_property
    def client(self) -> Any:
        return self.service("s3")

    def service(self, name: str) -> Any:
        """A client of boto3's for one service of the server."""
        import boto3

        return boto3.session.Session().client(
            name,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
        )

    def create_bucket(self) -> str:
        """A new, empty bucket; its name."""
        name = f"test-{uuid4().hex}"
        self.client.create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Every object in a bucket, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", ()))

    def read(self, bucket: str, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    @property
    def credentials(self) -> dict[str, str]:
        """For the environment, where the tools of AWS look."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    @property
    def properties(self) -> dict[str, str]:
        """For a catalog's ``properties``: all that a client needs to know."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.path-style-access": "true",
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
        }
