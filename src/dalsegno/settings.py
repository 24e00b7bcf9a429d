"""One frozen settings object: defaults < file < environment < flags.

The file is ``dalsegno.toml``, looked for in the working folder and its parents; without one, everything lives in a
folder ``.dalsegno`` beside the user: a SQLite store, and a catalog ``lake`` on SQLite with a local warehouse.
``${NAME}`` in a value is taken from the environment, so that secrets need not be in the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from dalsegno.errors import SettingsError, UnknownName
from dalsegno.hints import did_you_mean
from dalsegno.private_files import OWN_FOLDER

FILE_NAME = "dalsegno.toml"
ENVIRONMENT_PREFIX = "DALSEGNO_"
#: What is found out, and cannot be set.
_FOUND = {"root", "settings_file"}


class CatalogType(StrEnum):
    SQL = "sql"
    REST = "rest"
    HIVE = "hive"
    GLUE = "glue"


@dataclass(frozen=True)
class CatalogSettings:
    """One Iceberg catalog, from which both the PyIceberg properties and the Spark configuration are made."""

    name: str
    #: sql | rest | hive | glue
    type: CatalogType = CatalogType.SQL
    #: Where it is: a SQLAlchemy URL (sql), http(s)://… (rest), thrift://… (hive); glue needs none.
    uri: str | None = None
    #: Where tables are kept: a folder or an object store address; for rest, the server's name of the warehouse.
    warehouse: str | None = None
    #: The folder under which change tables keep their metadata; by default one beside the source tables.
    changes_location: str | None = None
    #: Whether captures may write a branch into source tables that keeps unprocessed history from expiring.
    pin: bool = True
    #: Properties that PyIceberg and Spark understand alike, such as ``token`` or ``s3.endpoint``.
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Properties for PyIceberg alone.
    pyiceberg: Mapping[str, str] = field(default_factory=dict)
    #: Properties for Spark's catalog alone (without ``spark.sql.catalog.NAME.``).
    spark: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConnectionSettings:
    """A database that SQL steps can name."""

    name: str
    #: A SQLAlchemy URL.
    url: str = field(repr=False)


class ChannelType(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    EMAIL = "email"


class Encryption(StrEnum):
    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


@dataclass(frozen=True)
class ChannelSettings:
    """A way to tell people something, which workflows can name in ``alerting``."""

    name: str
    #: webhook (a POST of JSON) | slack (a webhook as Slack and others like it have) | email
    type: ChannelType = ChannelType.WEBHOOK
    #: Of a webhook; best taken from the environment, because whoever knows it can use it.
    url: str | None = field(default=None, repr=False)
    #: More headers of a webhook, such as ``Authorization``.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: Of e-mail: the server that takes it.
    host: str | None = None
    port: int = 587
    #: starttls | tls (from the beginning, usually on port 465) | none
    encryption: Encryption = Encryption.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    #: Who it is from (in the file: ``from``), and whom it is for.
    sender: str | None = None
    to: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """What can be set; see docs/reference/settings.md."""

    #: The folder that relative paths start from: where the settings file is.
    root: Path
    #: The settings file, if there is one.
    settings_file: Path | None = None
    #: Where captures and checkpoints are remembered: a SQLite or PostgreSQL URL.
    store: str = "sqlite:///.dalsegno/dalsegno.db"
    #: The catalog meant by a table name that names none.
    default_catalog: str = "lake"
    #: The namespace meant by a table name that names none; without it, such a name is refused.
    default_namespace: str | None = None
    #: The namespace in which change tables appear.
    change_namespace: str = "icdc"
    #: How many days a capture is kept and its source history pinned before ``dalsegno clean`` may end it.
    capture_days: int = 7
    #: How many metadata files are read, copied or written at once.
    io_threads: int = 32
    #: How many megabytes of manifest lists and manifests, which never change, are cached on disk; 0: none.
    metadata_cache_mb: int = 256
    #: What this machine is called, by default its host's name; no two that share a store may have the same.
    machine: str | None = None
    #: How many steps one process runs at the same time.
    workers: int = 32
    #: How many seconds pass from one look at tables that triggers watch to the next.
    trigger_poll_seconds: int = 5
    #: The folder in which steps keep their logs and files.
    jobs_folder: str = ".dalsegno/jobs"
    #: Where the files are that workflows refer to as ``$FILE{…}``, ``$S3{…}`` and ``$GS{…}`` by relative names: a
    #: folder, by default that of the workflow's own file, or an address such as s3://bucket/sql.
    files_location: str = "."
    #: Secrets by name, for parameters of workflows; best taken from the environment: ``token = "${TOKEN}"``.
    secrets: Mapping[str, str] = field(default_factory=dict)
    #: The Spark Connect server that Spark steps use, as ``sc://…``; without one, dalsegno runs one on this machine.
    spark_remote: str | None = None
    #: The memory of a local Spark, as Java writes it.
    spark_memory: str = "1g"
    #: How many minutes a local Spark waits for the next step before it stops.
    spark_idle_minutes: int = 15
    #: Spark's own configuration, of the local server and of what is submitted.
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    #: How many megabytes of what an attempt of a step prints are kept.
    log_limit_mb: int = 64
    #: Variables of dalsegno's own environment that steps get as well; ``AWS_*`` means all that begin so.
    pass_environment: tuple[str, ...] = ()
    #: Folders outside the root from which steps may take files.
    job_folders: tuple[str, ...] = ()
    #: Hosts and networks that HTTP steps may call although they are not public.
    http_allow: tuple[str, ...] = ()
    #: Where the server listens for HTTP, as HOST:PORT.
    listen: str = "127.0.0.1:8484"
    #: Where the server answers ``/health`` and ``/ready`` besides, on a listener of their own, as HOST:PORT.
    probes: str | None = None
    #: For how many days finished runs are kept.
    keep_runs_days: int = 90
    #: How many runs of each workflow are kept, however old they are.
    keep_runs_least: int = 10
    #: For how many days the logs and files of steps are kept.
    keep_logs_days: int = 30
    #: How people are told of what goes wrong, by name.
    notifications: Mapping[str, ChannelSettings] = field(default_factory=dict)
    #: The databases of SQL steps, by name.
    connections: Mapping[str, ConnectionSettings] = field(default_factory=dict)
    catalogs: Mapping[str, CatalogSettings] = field(default_factory=dict)

    @property
    def capture_lifetime(self) -> timedelta:
        return timedelta(days=self.capture_days)

    @property
    def metadata_cache_path(self) -> Path:
        return self.root / OWN_FOLDER / "cache" / "metadata"

    @property
    def jobs_path(self) -> Path:
        return self.root / self.jobs_folder

    def catalog(self, name: str) -> CatalogSettings:
        """The catalog's settings, or an error that lists the ones there are."""
        if name in self.catalogs:
            return self.catalogs[name]
        raise UnknownName(
            f"There is no catalog {name!r}; the settings name {', '.join(sorted(self.catalogs))}.",
            hint=f"Correct the name, set default_catalog, or add [catalogs.{name}] to {self.root / FILE_NAME}.",
        )

    def connection(self, name: str) -> ConnectionSettings:
        """The connection's settings, or an error that lists the ones there are."""
        if name in self.connections:
            return self.connections[name]
        raise UnknownName(
            f"There is no connection {name!r}; the settings name {', '.join(sorted(self.connections)) or 'none'}.",
            hint=f"Correct the name, or add [connections.{name}] with a url to {self.root / FILE_NAME}.",
        )


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    working_folder: Path | None = None,
    **flags: Any,
) -> Settings:
    """The settings in force; ``flags`` that are None count as not given."""
    environment = os.environ if environment is None else environment
    working_folder = working_folder or Path.cwd()
    named = file or (Path(value) if (value := environment.get(f"{ENVIRONMENT_PREFIX}SETTINGS")) else None)
    if named is not None and not named.is_file():
        raise SettingsError(f"The settings file {named} does not exist.", hint="Create it, or name another one.")
    found = named or _nearest_file(working_folder)
    values = _flat(_read(found)) if found else {}
    _refuse_unknown(values, _names(Settings) - _FOUND, f"{found or FILE_NAME}")
    values |= _from_environment(environment)
    values |= {name: value for name, value in flags.items() if value is not None}
    root = found.resolve().parent if found else working_folder.resolve()
    values["spark_conf"] = _properties("[spark.conf]", values.get("spark_conf", {}))
    tables = values.pop("catalogs", {})
    if not isinstance(tables, Mapping):
        raise SettingsError("[catalogs] must hold one table per catalog, such as [catalogs.lake].")
    catalogs = {name: _catalog(name, table, environment) for name, table in tables.items()}
    values["connections"] = _connections(values.get("connections", {}), environment)
    values["notifications"] = _channels(values.get("notifications", {}), environment)
    settings_file = found.resolve() if found else None
    settings = Settings(
        root=root, settings_file=settings_file, **_checked(Settings, _expanded(values, environment), "the settings")
    )
    if settings.spark_remote and not settings.spark_remote.startswith("sc://"):
        raise SettingsError(f"spark.remote is {settings.spark_remote!r}, expected sc://HOST:PORT.")
    settings = replace(settings, catalogs=catalogs or {settings.default_catalog: _embedded(settings.default_catalog)})
    return _with_absolute_paths(settings)


def _embedded(name: str) -> CatalogSettings:
    return CatalogSettings(name, uri="sqlite:///.dalsegno/catalog.db", warehouse=".dalsegno/warehouse")


def _nearest_file(folder: Path) -> Path | None:
    candidates = (parent / FILE_NAME for parent in (folder.resolve(), *folder.resolve().parents))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid TOML: {error}.") from error


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """What the file says in the table ``[spark]`` is known here as ``spark_…``."""
    table = values.pop("spark", {})
    if not isinstance(table, Mapping):
        raise SettingsError(f"[spark] must be a table, found {table!r}.", hint='For instance: spark.memory = "2g"')
    return values | {f"spark_{name}": value for name, value in table.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in _names(Settings) - _FOUND - {"catalogs", "connections", "notifications", "secrets", "spark_conf"}:
        text = environment.get(f"{ENVIRONMENT_PREFIX}{name.upper()}")
        if text is None:
            continue
        if isinstance(getattr(Settings, name), tuple):
            values[name] = [part.strip() for part in text.split(",") if part.strip()]
        else:
            values[name] = int(text) if text.isdecimal() else text
    return values


def _connections(tables: Any, environment: Mapping[str, str]) -> dict[str, ConnectionSettings]:
    if not isinstance(tables, Mapping):
        raise SettingsError("[connections] must hold one table per connection, such as [connections.warehouse].")
    connections = {}
    for name, table in tables.items():
        where = f"[connections.{name}]"
        if not isinstance(table, Mapping) or not isinstance(table.get("url"), str):
            raise SettingsError(f"{where} must be a table with a url, found {table!r}.")
        _refuse_unknown(table, {"url"}, where)
        connections[name] = ConnectionSettings(name, _expanded(table["url"], environment))
    return connections


def _channels(tables: Any, environment: Mapping[str, str]) -> dict[str, ChannelSettings]:
    if not isinstance(tables, Mapping):
        raise SettingsError("[notifications] must hold one table per channel, such as [notifications.ops].")
    return {name: _channel(name, table, environment) for name, table in tables.items()}


def _channel(name: str, table: Any, environment: Mapping[str, str]) -> ChannelSettings:
    where = f"[notifications.{name}]"
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} must be a table, found {table!r}.")
    _refuse_unknown(table, {*(_names(ChannelSettings) - {"name", "sender"}), "from"}, where)
    values = _expanded(table, environment)
    for key, kind in (("type", ChannelType), ("encryption", Encryption)):
        if values.get(key, next(iter(kind))) not in list(kind):
            raise SettingsError(f"{where}: {key} is {values[key]!r}, expected one of {', '.join(kind)}.")
        if key in values:
            values[key] = kind(values[key])
    if "from" in values:
        values["sender"] = values.pop("from")
    if isinstance(values.get("to"), str):
        values["to"] = [values["to"]]
    values["headers"] = _properties(f"{where} headers", values.get("headers", {}))
    channel = ChannelSettings(name, **_checked(ChannelSettings, values, where))
    is_email = channel.type is ChannelType.EMAIL
    needed = {"host": channel.host, "from": channel.sender, "to": channel.to} if is_email else {"url": channel.url}
    for key, value in needed.items():
        if not value:
            raise SettingsError(f"{where}: a channel of type {channel.type} needs {key!r}.")
    if channel.url is not None and not channel.url.startswith(("http://", "https://")):
        raise SettingsError(f"{where}: url must begin with https:// or http://.")
    return channel


def _catalog(name: str, table: Any, environment: Mapping[str, str]) -> CatalogSettings:
    where = f"[catalogs.{name}]"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise SettingsError(f"{where}: a catalog's name is a word of letters, digits and underscores.")
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} must be a table, found {table!r}.")
    _refuse_unknown(table, _names(CatalogSettings) - {"name"}, where)
    values = _expanded(table, environment)
    kind = values.get("type", CatalogType.SQL.value)
    if kind not in list(CatalogType):
        raise SettingsError(f"{where}: type is {kind!r}, expected one of {', '.join(CatalogType)}.")
    values["type"] = CatalogType(kind)
    for group in ("properties", "pyiceberg", "spark"):
        values[group] = _properties(f"{where} {group}", values.get(group, {}))
    catalog = CatalogSettings(name, **_checked(CatalogSettings, values, where))
    if catalog.uri is None and catalog.type is not CatalogType.GLUE:
        raise SettingsError(f"{where}: a {catalog.type} catalog needs a uri.")
    return catalog


def _properties(where: str, table: Any, prefix: str = "") -> dict[str, str]:
    """Properties by their whole names; TOML makes a table of each part of a name that has dots and no quotes."""
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} must be a table, found {table!r}.")
    properties: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            properties |= _properties(where, value, f"{prefix}{name}.")
        else:
            properties[prefix + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return properties


def _with_absolute_paths(settings: Settings) -> Settings:
    catalogs = {
        name: replace(
            catalog,
            uri=_absolute_url(catalog.uri, settings.root) if catalog.uri else None,
            warehouse=_absolute_folder(catalog, settings.root),
            changes_location=_absolute_path(catalog.changes_location, settings.root),
        )
        for name, catalog in settings.catalogs.items()
    }
    return replace(
        settings,
        store=_absolute_url(settings.store, settings.root),
        catalogs=catalogs,
        job_folders=tuple(str((settings.root / folder).resolve()) for folder in settings.job_folders),
        connections={
            name: replace(connection, url=_absolute_url(connection.url, settings.root))
            for name, connection in settings.connections.items()
        },
    )


def _absolute_folder(catalog: CatalogSettings, root: Path) -> str | None:
    # A REST server's or Glue's warehouse is a name or an address of theirs, not a folder of ours.
    if catalog.type in (CatalogType.REST, CatalogType.GLUE):
        return catalog.warehouse
    return _absolute_path(catalog.warehouse, root)


def _absolute_path(path: str | None, root: Path) -> str | None:
    # Java writes file:/folder where others write file:///folder.
    is_address = path is not None and ("://" in path or path.startswith("file:/"))
    return path if path is None or is_address else str((root / path).resolve())


def _absolute_url(url: str, root: Path) -> str:
    prefix = "sqlite:///"
    if not url.startswith(prefix) or url == prefix or ":memory:" in url:
        return url
    return prefix + str((root / url.removeprefix(prefix)).resolve())


def _expanded(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _expanded(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, environment) for item in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise SettingsError(
                f"The settings refer to ${{{match[1]}}}, which is not set in the environment.",
                hint=f"export {match[1]}=…",
            )
        return environment[match[1]]

    return re.sub(r"\$\{(\w+)\}", variable, value)


def _names(kind: type) -> set[str]:
    return {item.name for item in fields(kind)}


def _refuse_unknown(values: Mapping[str, Any], known: set[str], where: str) -> None:
    for name in values.keys() - known:
        raise SettingsError(f"{where}: there is no setting {name!r}.", hint=did_you_mean(name, known))


def _checked(kind: type, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values, or an error for the first that has another type than the default's."""
    checked = dict(values)
    for item in fields(kind):
        if item.name not in values or item.default is MISSING or item.default is None:
            continue
        value, expected = values[item.name], type(item.default)
        if expected is tuple:
            if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
                raise SettingsError(f"{where}: {item.name} is {value!r}, expected a list of texts.")
            checked[item.name] = tuple(value)
        elif not isinstance(value, expected) or (expected is int and (isinstance(value, bool) or value < 1)):
            wanted = "a whole number above 0" if expected is int else f"a {expected.__name__}"
            raise SettingsError(f"{where}: {item.name} is {value!r}, expected {wanted}.")
    return checked
