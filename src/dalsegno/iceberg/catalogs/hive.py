"""A Hive metastore, of version 3 or 4.

Writers exclude each other with a lock of the metastore's. Where it can compare (HIVE-26882), it is also asked to change
a table only if the pointer is as expected, which is all that writers rely on that were configured to take no locks.
"""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchTableError

from dalsegno.errors import PlatformError
from dalsegno.iceberg.catalogs.catalog import LoadedTable
from dalsegno.iceberg.catalogs.column_types import column_type, current_fields
from dalsegno.iceberg.catalogs.pointers import PointerCatalog
from dalsegno.iceberg.history import RawMetadata, parse_metadata
from dalsegno.model.tables import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog

    from dalsegno.iceberg.catalogs.hive_client import MetastoreClient, MetastoreConnections

_LOCATION, _PREVIOUS = "metadata_location", "previous_metadata_location"
_SNAPSHOT = "current-snapshot-id"
_LOCK_ENABLED = "engine.hive.lock-enabled"
_ALL_LOCKS = f"iceberg.{_LOCK_ENABLED}"
_LOCK_SECONDS = 60.0
_LOCK_POLL_SECONDS = 0.2
#: How the metastore says that a pointer is not as expected.
_MODIFIED = "has been modified"


class HiveCatalog(PointerCatalog):
    extra: ClassVar[str] = "hive"

    def _prepare(self, catalog: PyIcebergCatalog) -> None:
        """PyIceberg's one connection becomes several, for threads."""
        from dalsegno.iceberg.catalogs.hive_client import MetastoreConnections  # noqa: PLC0415 - slow import

        cast(Any, catalog)._client = MetastoreConnections(catalog.properties)

    @property
    def _connections(self) -> MetastoreConnections:
        return self.pyiceberg._client  # type: ignore[attr-defined,no-any-return]

    def _location_of(self, name: TableName) -> str:
        with self._connections as client:
            return _location(_entry(client, name))

    def register(self, name: TableName, metadata_location: str) -> bool:
        from hive_metastore import ttypes  # noqa: PLC0415 - slow import

        with self._talking(f"register {name}"):
            metadata = parse_metadata(self.files_at(metadata_location).read(metadata_location))
            table = _new_entry(name, metadata, metadata_location)
            self.pyiceberg.create_namespace_if_not_exists(name.namespace)
            with self._connections as client:
                try:
                    client.create_table(table)
                except ttypes.AlreadyExistsException:
                    return False
            return True

    def _swap(self, table: LoadedTable, changed: RawMetadata, location: str) -> bool:
        from hive_metastore import ttypes  # noqa: PLC0415 - slow import

        with self._connections as client, self._locked(client, table) as lock:
            entry = _entry(client, table.name)
            if _location(entry) != table.metadata_location:
                return False
            entry.parameters |= {_LOCATION: location, _PREVIOUS: table.metadata_location}
            if _SNAPSHOT in entry.parameters:
                entry.parameters[_SNAPSHOT] = str(changed.get(_SNAPSHOT))
            conditions = {
                "expected_parameter_key": _LOCATION,
                "expected_parameter_value": table.metadata_location,
                "DO_NOT_UPDATE_STATS": "true",
            }
            lock.ensure()
            lock.in_doubt = True
            try:
                client.alter_table_with_environment_context(
                    *_address(table.name), entry, ttypes.EnvironmentContext(conditions)
                )
            except ttypes.MetaException as error:
                lock.in_doubt = False
                if _MODIFIED in str(error.message):
                    return False
                raise
            except Exception:
                if self._is_made(table, location, lock):
                    return True
                raise
            lock.in_doubt = False
            return True

    def _is_made(self, table: LoadedTable, location: str, lock: _Lock) -> bool:
        """Whether a swap was made to which the answer was lost; then the lock is released by another connection."""
        with suppress(Exception), self._connections as client:
            if _location(_entry(client, table.name)) == location:
                lock.in_doubt, lock.client = False, client
                lock.release()
                return True
        return False

    @contextmanager
    def _locked(self, client: MetastoreClient, table: LoadedTable) -> Iterator[_Lock]:
        """The table's lock, which other writers take as well, unless it is configured that nobody does."""
        lock = _Lock(client, table.name)
        if not self._takes_locks(table):
            yield lock
            return
        try:
            lock.take()
            yield lock
        finally:
            # A change may still be made if its answer was lost: until the lock expires, nobody else may write.
            if not lock.in_doubt:
                lock.release()

    def _spark_properties(self) -> Mapping[str, str]:
        """Spark looks for it in Hadoop's configuration."""
        enabled = self.settings.properties.get(_ALL_LOCKS)
        return {**super()._spark_properties(), **({} if enabled is None else {f"hadoop.{_ALL_LOCKS}": enabled})}

    def _takes_locks(self, table: LoadedTable) -> bool:
        default = self._properties.get(_ALL_LOCKS, "true")
        return str(table.metadata.get("properties", {}).get(_LOCK_ENABLED, default)).lower() != "false"


class _Lock:
    """A lock of the metastore's on a table, for writers."""

    def __init__(self, client: MetastoreClient, name: TableName) -> None:
        self.client, self._name = client, name
        self._id: int | None = None
        self.in_doubt = False

    def take(self) -> None:
        from hive_metastore import ttypes  # noqa: PLC0415 - slow import

        database, table = _address(self._name)
        part = ttypes.LockComponent(
            ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, database, table, isTransactional=True
        )
        request = ttypes.LockRequest([part], user=getpass.getuser(), hostname=socket.gethostname())
        found = self.client.lock(request)
        self._id = found.lockid
        patience = time.monotonic() + _LOCK_SECONDS
        while found.state == ttypes.LockState.WAITING and time.monotonic() < patience:
            time.sleep(_LOCK_POLL_SECONDS)
            found = self.client.check_lock(ttypes.CheckLockRequest(lockid=self._id))
        if found.state != ttypes.LockState.ACQUIRED:
            raise PlatformError(
                f"The lock of {self._name} in the Hive metastore was not free for {_LOCK_SECONDS:.0f} s.",
                hint="Another writer holds it, or died with it: such locks expire after hive.txn.timeout, 5 minutes.",
            )

    def ensure(self) -> None:
        """Fail if the lock expired in the meantime: this process may have been suspended."""
        from hive_metastore import ttypes  # noqa: PLC0415 - slow import

        if self._id is None:
            return
        if self.client.check_lock(ttypes.CheckLockRequest(lockid=self._id)).state != ttypes.LockState.ACQUIRED:
            raise PlatformError(f"The lock of {self._name} in the Hive metastore expired before it was used.")

    def release(self) -> None:
        from hive_metastore import ttypes  # noqa: PLC0415 - slow import

        if self._id is not None:
            # If it cannot be released, it expires.
            with suppress(Exception):
                self.client.unlock(ttypes.UnlockRequest(lockid=self._id))
            self._id = None


def _entry(client: MetastoreClient, name: TableName) -> Any:
    from hive_metastore import ttypes  # noqa: PLC0415 - slow import

    try:
        return client.get_table(*_address(name))
    except ttypes.NoSuchObjectException as error:
        raise NoSuchTableError(str(name)) from error


def _new_entry(name: TableName, metadata: RawMetadata, metadata_location: str) -> Any:
    """An external table: Hive never deletes files of it."""
    from hive_metastore import ttypes  # noqa: PLC0415 - slow import

    database, table = _address(name)
    columns = [
        ttypes.FieldSchema(
            field["name"], column_type(field["type"], zoned="timestamp with local time zone"), field.get("doc")
        )
        for field in current_fields(metadata)
    ]
    now = int(time.time())
    return ttypes.Table(
        dbName=database,
        tableName=table,
        owner=getpass.getuser(),
        createTime=now,
        lastAccessTime=now,
        sd=ttypes.StorageDescriptor(
            columns,
            metadata["location"],
            "org.apache.hadoop.mapred.FileInputFormat",
            "org.apache.hadoop.mapred.FileOutputFormat",
            serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
        ),
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE", "table_type": "ICEBERG", _LOCATION: metadata_location},
    )


def _address(name: TableName) -> tuple[str, str]:
    """Hive has one level of namespaces."""
    if len(name.namespace) != 1:
        raise NoSuchTableError(str(name))
    return name.namespace[0], name.name


def _location(entry: Any) -> str:
    parameters: Mapping[str, str] = entry.parameters or {}
    if parameters.get("table_type", "").lower() != "iceberg" or _LOCATION not in parameters:
        raise NoSuchIcebergTableError(f"{entry.dbName}.{entry.tableName} is not an Iceberg table")
    return parameters[_LOCATION]
