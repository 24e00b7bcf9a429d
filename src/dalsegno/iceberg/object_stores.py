"""What each engine needs to reach the object store of a catalog, decided here from the catalog's settings.

A warehouse of ``s3://…``, ``gs://…`` or ``abfss://…`` is enough. What the settings write under ``properties`` in
PyIceberg's names is translated for Spark (Iceberg's Java library), DuckDB and Polars. Credentials that the settings
don't hold are left to each engine, which looks where the tools of the cloud look.

A REST catalog may send addresses and credentials of its own for each table. There, nothing is guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from dalsegno.settings import CatalogSettings, CatalogType

Properties = Mapping[str, str]


class ObjectStore(StrEnum):
    S3 = "s3"
    GCS = "gcs"
    ADLS = "adls"


_SCHEMES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), ObjectStore.S3),
    **dict.fromkeys(("gs", "gcs"), ObjectStore.GCS),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), ObjectStore.ADLS),
}
#: How properties begin that speak of a store.
_PREFIXES = {
    **dict.fromkeys(("s3.", "client.", "glue.", "rest.sig"), ObjectStore.S3),
    "gcs.": ObjectStore.GCS,
    "adls.": ObjectStore.ADLS,
}
#: Iceberg's Java classes that read and write files there.
FILE_IO = {
    ObjectStore.S3: "org.apache.iceberg.aws.s3.S3FileIO",
    ObjectStore.GCS: "org.apache.iceberg.gcp.gcs.GCSFileIO",
    ObjectStore.ADLS: "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
}
#: For a catalog with files in several stores.
_ANY_FILE_IO = "org.apache.iceberg.io.ResolvingFileIO"
#: The variables in which the tools of a cloud look for credentials, and what else they are told.
_VARIABLES = {
    ObjectStore.S3: ("AWS_*",),
    ObjectStore.GCS: ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_*", "CLOUDSDK_*", "GCE_METADATA_*"),
    ObjectStore.ADLS: ("AZURE_*", "IDENTITY_*", "MSI_*"),
}
#: PyIceberg's names, and those of Iceberg's Java library for the same.
_JAVA_NAMES = {
    "s3.region": "client.region",
    "s3.sse-kms-key-id": "s3.sse.key",
    "client.access-key-id": "s3.access-key-id",
    "client.secret-access-key": "s3.secret-access-key",
    "client.session-token": "s3.session-token",
    "adls.account-name": "adls.auth.shared-key.account.name",
    "adls.account-key": "adls.auth.shared-key.account.key",
}
_ENCRYPTION = {"AES256": "s3", "aws:kms": "kms", "aws:kms:dsse": "dsse-kms"}
#: A server that is not of AWS takes any region, but requests are signed for one.
_ANY_REGION = "us-east-1"
#: The parts of a credential, as properties of ``s3.`` and ``client.`` and as variables.
_KEYS = {
    "access-key-id": "AWS_ACCESS_KEY_ID",
    "secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "session-token": "AWS_SESSION_TOKEN",
}


def store_at(location: str | None) -> ObjectStore | None:
    """The store of an address; None for a folder, or a name that a server knows."""
    return _SCHEMES.get(urlsplit(location).scheme) if location and "://" in location else None


def stores_of(settings: CatalogSettings) -> tuple[ObjectStore, ...]:
    """The stores that a catalog keeps files in, as far as its settings say; the first is that of new tables."""
    found = [store_at(settings.warehouse), store_at(settings.changes_location)]
    if settings.type is CatalogType.GLUE:
        found.append(ObjectStore.S3)
    if not any(found) and (settings.warehouse is None or settings.type is CatalogType.REST):
        found += [
            store for name in settings.properties for prefix, store in _PREFIXES.items() if name.startswith(prefix)
        ]
    return tuple(dict.fromkeys(store for store in found if store is not None))


def pyiceberg_properties(settings: CatalogSettings, environment: Properties | None = None) -> dict[str, str]:
    """Properties of PyIceberg that the settings do not write, but mean."""
    derived: dict[str, str] = {}
    if ObjectStore.S3 not in stores_of(settings):
        return derived
    written = settings.properties
    if settings.type is not CatalogType.REST:
        derived |= _derived_s3(settings, environment)
    if written.get("s3.path-style-access", "").lower() == "false" and "s3.endpoint" in {**written, **derived}:
        derived["s3.force-virtual-addressing"] = "true"
    if settings.type is CatalogType.GLUE:
        # What Glue is asked with, PyIceberg looks for under another name.
        region = written.get("s3.region") or derived.get("s3.region")
        derived |= {"client.region": region} if region else {}
        derived |= {f"client.{name}": value for name, value in _keys(settings).items()}
    return {name: value for name, value in derived.items() if name not in written}


def spark_properties(settings: CatalogSettings, environment: Properties | None = None) -> dict[str, str]:
    """What Spark's catalog of the same name gets for the files of its tables, from ``properties`` and beyond."""
    stores = stores_of(settings)
    derived = {}
    if ObjectStore.S3 in stores and settings.type is not CatalogType.REST:
        derived = _derived_s3(settings, environment)
    names = {**derived, **settings.properties}
    own = {_JAVA_NAMES.get(name, name): value for name, value in names.items()}
    if "s3.endpoint" in names or names.get("s3.force-virtual-addressing"):
        is_virtual = names.get("s3.force-virtual-addressing", "false").lower() == "true"
        own.setdefault("s3.path-style-access", str(not is_virtual).lower())
    if (encryption := names.get("s3.server-side-encryption")) in _ENCRYPTION:
        own.setdefault("s3.sse.type", _ENCRYPTION[encryption])
    if (token := names.get("adls.sas-token")) and (host := urlsplit(settings.warehouse or "").hostname):
        own.setdefault(f"adls.sas-token.{host}", token)
    if stores and settings.type is not CatalogType.REST:
        own.setdefault("io-impl", FILE_IO[stores[0]] if len(stores) == 1 else _ANY_FILE_IO)
    return own


def is_cloud_variable(name: str, catalogs: Mapping[str, CatalogSettings]) -> bool:
    """Whether the object stores of these catalogs are reached with an environment variable of this name."""
    stores = {store for catalog in catalogs.values() for store in stores_of(catalog)}
    return any(fnmatchcase(name, pattern) for store in stores for pattern in _VARIABLES[store])


def spark_variables(catalogs: Mapping[str, CatalogSettings]) -> dict[str, str]:
    """Variables for a driver: Iceberg's client of Glue finds keys there, and not among a catalog's properties."""
    found = [_keys(each) for each in catalogs.values() if each.type is CatalogType.GLUE]
    return {_KEYS[name]: value for keys in found[:1] for name, value in keys.items()}


def storage_options(settings: CatalogSettings, environment: Properties | None = None) -> dict[str, str]:
    """What Polars, and others that use Rust's ``object_store``, take to read the catalog's files. May hold secrets."""
    names = {**pyiceberg_properties(settings, environment), **settings.properties, **settings.pyiceberg}
    options = {
        "aws_region": names.get("s3.region") or names.get("client.region"),
        "aws_endpoint_url": names.get("s3.endpoint"),
        "aws_allow_http": "true" if names.get("s3.endpoint", "").startswith("http://") else None,
        "aws_virtual_hosted_style_request": names.get("s3.force-virtual-addressing"),
        "google_service_account": names.get("gcs.service-account"),
        "azure_storage_account_name": names.get("adls.account-name"),
        "azure_storage_account_key": names.get("adls.account-key"),
        "azure_storage_sas_key": names.get("adls.sas-token"),
        "azure_storage_tenant_id": names.get("adls.tenant-id"),
        "azure_storage_client_id": names.get("adls.client-id"),
        "azure_storage_client_secret": names.get("adls.client-secret"),
        **{f"aws_{name.replace('-', '_')}": value for name, value in _keys(settings).items()},
    }
    return {name: value for name, value in options.items() if value}


def duckdb_setup(
    settings: CatalogSettings, environment: Properties | None = None, *, with_secrets: bool = False
) -> tuple[str, ...]:
    """The statements that let DuckDB read the catalog's files; without secrets, dots stand for keys."""
    return tuple(_duckdb_setup(settings, environment, with_secrets=with_secrets))


def _duckdb_setup(settings: CatalogSettings, environment: Properties | None, *, with_secrets: bool) -> Iterator[str]:
    options = storage_options(settings, environment)
    for store in stores_of(settings):
        match store:
            case ObjectStore.S3:
                yield "INSTALL httpfs; LOAD httpfs"
                yield from _duckdb_s3(options, with_secrets=with_secrets)
            case ObjectStore.GCS:
                yield "INSTALL httpfs; LOAD httpfs"
                yield "CREATE OR REPLACE SECRET lake_gcs (TYPE gcs, KEY_ID '…', SECRET '…')"
            case ObjectStore.ADLS:
                yield "INSTALL azure; LOAD azure"
                account = _literal(options.get("azure_storage_account_name") or "…")
                parts = f"TYPE azure, PROVIDER credential_chain, ACCOUNT_NAME {account}"
                yield f"CREATE OR REPLACE SECRET lake_adls ({parts})"


def _duckdb_s3(options: Properties, *, with_secrets: bool) -> Iterator[str]:
    parts = ["TYPE s3"]
    if "aws_access_key_id" in options:
        shown = options if with_secrets else dict.fromkeys(options, "…")
        names = {"KEY_ID": "aws_access_key_id", "SECRET": "aws_secret_access_key", "SESSION_TOKEN": "aws_session_token"}
        parts += [f"{name} {_literal(shown[key])}" for name, key in names.items() if key in shown]
    else:
        yield "INSTALL aws; LOAD aws"
        parts.append("PROVIDER credential_chain")
    if "aws_region" in options:
        parts.append(f"REGION {_literal(options['aws_region'])}")
    if "aws_endpoint_url" in options:
        address = urlsplit(options["aws_endpoint_url"])
        style = "vhost" if options.get("aws_virtual_hosted_style_request") == "true" else "path"
        is_encrypted = str(address.scheme == "https").lower()
        parts += [f"ENDPOINT {_literal(address.netloc)}", f"URL_STYLE '{style}'", f"USE_SSL {is_encrypted}"]
    yield f"CREATE OR REPLACE SECRET lake_s3 ({', '.join(parts)})"


def _derived_s3(settings: CatalogSettings, environment: Properties | None) -> dict[str, str]:
    """Region, endpoint and keys by their ``s3.`` names: as written under other names, or from the environment."""
    environment = os.environ if environment is None else environment
    written = settings.properties
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    found = {
        "s3.endpoint": endpoint,
        "s3.region": written.get("client.region")
        or environment.get("AWS_REGION")
        or environment.get("AWS_DEFAULT_REGION")
        or (_ANY_REGION if written.get("s3.endpoint") or endpoint else None),
        **{f"s3.{name}": value for name, value in _keys(settings).items()},
    }
    return {name: value for name, value in found.items() if value and name not in written}


def _keys(settings: CatalogSettings) -> dict[str, str]:
    """The credential that the settings hold, if they do; its parts never come from two places."""
    for prefix in ("s3", "client", "glue"):
        names = {name: f"{prefix}.{name}" for name in _KEYS}
        for written in (settings.properties, settings.pyiceberg):
            if written.get(names["access-key-id"]):
                return {name: written[key] for name, key in names.items() if written.get(key)}
    return {}


def _literal(text: str) -> str:
    return "'" + re.sub("'", "''", text) + "'"
