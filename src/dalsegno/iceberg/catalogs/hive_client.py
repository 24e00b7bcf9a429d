"""Connections to a Hive metastore, of version 3 or 4, for several threads.

PyIceberg has one connection for all, never tries the second of several addresses, waits for ever, and calls methods
that Hive 4 has removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hive_metastore import ttypes
from hive_metastore.ThriftHiveMetastore import Client
from pyiceberg.catalog.hive import _HiveClient
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TSaslClientTransport,
    TTransportBase,
    TTransportException,
)

_CONNECT_MS, _ANSWER_MS = 10_000, 300_000
#: What a client has to say that it understands, so that the metastore shows it all tables.
_CAPABILITIES = ttypes.ClientCapabilities([ttypes.ClientCapability.INSERT_ONLY_TABLES])
_Answer = TypeVar("_Answer")


class MetastoreClient(Client):  # type: ignore[misc]
    """Calls by the names of Hive 3; those that Hive 4 has removed are repeated by their new names."""

    def get_table(self, dbname: str, tbl_name: str) -> Any:
        def newer() -> Any:
            request = ttypes.GetTableRequest(dbName=dbname, tblName=tbl_name, capabilities=_CAPABILITIES)
            return self.get_table_req(request).table

        return _either(lambda: super(MetastoreClient, self).get_table(dbname, tbl_name), newer)

    def get_table_objects_by_name(self, dbname: str, tbl_names: list[str]) -> Any:
        def newer() -> Any:
            request = ttypes.GetTablesRequest(dbName=dbname, tblNames=tbl_names, capabilities=_CAPABILITIES)
            return self.get_table_objects_by_name_req(request).tables

        return _either(lambda: super(MetastoreClient, self).get_table_objects_by_name(dbname, tbl_names), newer)


def _either(older: Callable[[], _Answer], newer: Callable[[], _Answer]) -> _Answer:
    try:
        return older()
    except TApplicationException as error:
        if error.type != TApplicationException.UNKNOWN_METHOD:
            raise
        return newer()


class _Connection(_HiveClient):
    def _init_thrift_transport(self) -> TTransportBase:
        address = urlsplit(self._uri)
        self._socket = TSocket(address.hostname, address.port)
        self._socket.setTimeout(_CONNECT_MS)
        if self._kerberos_auth:
            return TSaslClientTransport(self._socket, host=address.hostname, service=self._kerberos_service_name)
        return TBufferedTransport(self._socket)

    def _client(self) -> MetastoreClient:
        self._socket.setTimeout(_ANSWER_MS)
        client = MetastoreClient(TBinaryProtocol(self._transport))
        if self._ugi:
            client.set_ugi(*self._ugi)
        return client


class MetastoreConnections:
    """In place of PyIceberg's one client: ``with connections as client`` opens one of the calling thread's own."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._addresses = [address.strip() for address in properties["uri"].split(",")]
        self._options = (
            properties.get("ugi"),
            str(properties.get("hive.kerberos-authentication", "false")).lower() == "true",
            properties.get("hive.kerberos-service-name", "hive"),
        )
        self._local = threading.local()

    def __enter__(self) -> MetastoreClient:
        for address in self._addresses:
            connection = _Connection(address, *self._options)
            try:
                client: MetastoreClient = connection.__enter__()
            except TTransportException:
                if address == self._addresses[-1]:
                    raise
                continue
            self._opened.append(connection)
            return client
        raise AssertionError("there is at least one address")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.pop().__exit__(kind, error, trace)

    @property
    def _opened(self) -> list[_Connection]:
        if not hasattr(self._local, "opened"):
            self._local.opened = []
        opened: list[_Connection] = self._local.opened
        return opened
