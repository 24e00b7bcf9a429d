"""How the buckets of S3 are reached, by the properties that PyIceberg takes.

Credentials are looked for where the tools of AWS look: in the properties (written in the settings, or vended by a REST
catalog), in the environment, in the profile of ``~/.aws``, then in what the machine is given (web identity, container,
instance). What is only known to the AWS SDK, such as a role to assume, is left to PyArrow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential, S3Store

SCHEMES = ("s3", "s3a", "s3n")
#: Properties that only PyArrow's client of AWS knows what to do with.
_LEFT_TO_PYARROW = ("s3.role-arn", "client.role-arn", "s3.signer", "s3.retry-strategy-impl", "s3.resolve-region")
#: The same of a profile: it names no keys, but a way to get them.
_WAYS = ("role_arn", "sso_session", "sso_start_url", "credential_process", "source_profile")
#: Enough to live through a store that asks to slow down; a server that is not there is reported in a few seconds.
_RETRY: RetryConfig = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}
#: How many accounts a process keeps connections for; a REST catalog may vend new credentials with each table.
_MOST_KEPT = 32
_CONNECT_SECONDS, _REQUEST_SECONDS = 5.0, 30.0


def is_understood(properties: Mapping[str, str]) -> bool:
    """Whether all that the properties and the profile ask for can be done here."""
    if any(properties.get(name) for name in _LEFT_TO_PYARROW):
        return False
    return _has_keys(properties) or not any(name in _profile(_profile_name(properties)) for name in _WAYS)


@dataclass(frozen=True)
class S3Access:
    """Everything that requests need; two that are equal may do the same."""

    endpoint: str | None
    region: str | None
    #: None: obstore looks for them itself.
    credentials: tuple[tuple[str, str | None], ...] = field(repr=False)
    is_anonymous: bool
    is_virtual_hosted: bool
    encryption: tuple[tuple[str, str], ...]
    proxy: str | None
    connect_seconds: float
    request_seconds: float
    _buckets: dict[str, S3Store] = field(default_factory=dict, repr=False, compare=False)
    _guard: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> S3Access:
        profile = _profile(_profile_name(properties))
        endpoint = (
            properties.get("s3.endpoint")
            or os.environ.get("AWS_ENDPOINT_URL_S3")
            or os.environ.get("AWS_ENDPOINT_URL")
            or profile.get("endpoint_url")
        )
        named = (properties.get(name) for name in ("s3.region", "client.region"))
        environment = (os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION"))
        region = next(filter(None, (*named, *environment, profile.get("region"))), None)
        encryption = {
            "server_side_encryption": properties.get("s3.server-side-encryption"),
            "sse_kms_key_id": properties.get("s3.sse-kms-key-id"),
        }
        made = cls(
            endpoint=endpoint,
            region=region,
            credentials=tuple(_credentials(properties, profile).items()),
            is_anonymous=_is_true(properties.get("s3.anonymous"), default=False),
            is_virtual_hosted=_is_true(properties.get("s3.force-virtual-addressing"), default=endpoint is None),
            encryption=tuple((name, value) for name, value in encryption.items() if value),
            proxy=properties.get("s3.proxy-uri"),
            connect_seconds=float(properties.get("s3.connect-timeout") or _CONNECT_SECONDS),
            request_seconds=float(properties.get("s3.request-timeout") or _REQUEST_SECONDS),
        )
        return _kept(made)

    def bucket(self, name: str) -> S3Store:
        """The client of one bucket, with its pool of connections; threads may share it."""
        with self._guard:
            if name not in self._buckets:
                self._buckets[name] = self._opened(name)
            return self._buckets[name]

    def marker(self, bucket: str, key: str) -> S3Store:
        """A client for one object alone, of which the key ends with a slash: its own key there is empty.

        obstore takes no such key, because most stores have no use for it.
        """
        return self._opened(bucket, f"/{quote(key)}")

    def _opened(self, bucket: str, path: str = "") -> S3Store:
        from obstore.store import S3Store  # noqa: PLC0415 - only where there is an object store

        options: dict[str, Any] = {
            "connect_timeout": timedelta(seconds=self.connect_seconds),
            # Of each piece of an answer; a long one may take longer as a whole.
            "read_timeout": timedelta(seconds=self.request_seconds),
            "timeout": timedelta(seconds=10 * self.request_seconds),
        }
        if self.proxy:
            options["proxy_url"] = self.proxy
        config: dict[str, Any] = dict(self.encryption)
        if self.is_anonymous:
            config["skip_signature"] = True
        # A certificate for *.s3.amazonaws.com does not hold for a name with more dots in it.
        is_virtual_hosted = self.is_virtual_hosted and "." not in bucket and not path
        if self.endpoint:
            address = urlsplit(self.endpoint if "://" in self.endpoint else f"https://{self.endpoint}")
            options["allow_http"] = address.scheme == "http"
            host = f"{bucket}.{address.netloc}" if is_virtual_hosted else address.netloc
            config["endpoint"] = f"{address.scheme}://{host}{address.path.rstrip('/')}"
        return S3Store(
            f"{bucket}{path}",
            disable_bulk_delete=bool(path),
            config=cast("S3Config", config),
            region=self.region or ("us-east-1" if self.endpoint else region_of(bucket)),
            virtual_hosted_style_request=is_virtual_hosted,
            client_options=cast("ClientConfig", options),
            credential_provider=self._keys if self.credentials and not self.is_anonymous else None,
            retry_config=_RETRY,
        )

    def _keys(self) -> S3Credential:
        """Not as configuration: that would mix them with a token from the environment."""
        return cast("S3Credential", {**dict(self.credentials), "expires_at": None})


@lru_cache(maxsize=_MOST_KEPT)
def _kept(access: S3Access) -> S3Access:
    """The first that was equal, with the connections that it has open."""
    return access


def _credentials(properties: Mapping[str, str], profile: Mapping[str, str]) -> dict[str, str | None]:
    """Keys that are written somewhere; none where obstore has to look: in the environment, then in the machine's."""
    for prefix in ("s3", "client"):
        if properties.get(f"{prefix}.access-key-id"):
            return {
                "access_key_id": properties[f"{prefix}.access-key-id"],
                "secret_access_key": properties.get(f"{prefix}.secret-access-key", ""),
                "token": properties.get(f"{prefix}.session-token"),
            }
    is_asked_for = any(properties.get(f"{prefix}.profile-name") for prefix in ("s3", "client"))
    if profile.get("aws_access_key_id") and (is_asked_for or not _has_environment_keys()):
        return {
            "access_key_id": profile["aws_access_key_id"],
            "secret_access_key": profile.get("aws_secret_access_key", ""),
            "token": profile.get("aws_session_token"),
        }
    return {}


def _has_keys(properties: Mapping[str, str]) -> bool:
    written = any(properties.get(f"{prefix}.access-key-id") for prefix in ("s3", "client"))
    return written or _is_true(properties.get("s3.anonymous"), default=False) or _has_environment_keys()


def _has_environment_keys() -> bool:
    return bool(os.environ.get("AWS_ACCESS_KEY_ID")) or bool(os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"))


def _profile_name(properties: Mapping[str, str]) -> str:
    names = (properties.get("s3.profile-name"), properties.get("client.profile-name"), os.environ.get("AWS_PROFILE"))
    return next(filter(None, names), "default")


def _profile(name: str) -> Mapping[str, str]:
    """What the files of the AWS command line say of a profile; what both say, ``credentials`` says."""
    import configparser  # noqa: PLC0415 - only where there is an object store

    home = Path(os.path.expanduser("~/.aws"))  # noqa: PTH111 - Path.home() fails where a user has none
    files = (
        (os.environ.get("AWS_CONFIG_FILE") or home / "config", "default" if name == "default" else f"profile {name}"),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", name),
    )
    found: dict[str, str] = {}
    for file, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            found |= dict(parser.items(section))
    return found


@lru_cache(maxsize=100)
def region_of(bucket: str) -> str:
    """Where a bucket of AWS is: its address says so, to whoever asks."""
    import http.client  # noqa: PLC0415 - seldom needed

    connection = http.client.HTTPSConnection("s3.amazonaws.com", timeout=_CONNECT_SECONDS)
    try:
        connection.request("HEAD", f"/{bucket}")
        return connection.getresponse().getheader("x-amz-bucket-region") or "us-east-1"
    except OSError:
        return "us-east-1"
    finally:
        connection.close()


def _is_true(value: str | None, *, default: bool) -> bool:
    return default if value is None else value.strip().lower() in ("true", "1", "yes", "on")
