"""The verbs of catalogs and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dalsegno.model.tables import TableName
from dalsegno.operations.context import Context
from dalsegno.operations.pages import Page, key_of, page_of, sorted_page

if TYPE_CHECKING:
    from dalsegno.capture.checking import CatalogReport
    from dalsegno.model.proofs import Proof
    from dalsegno.model.refreshes import Refresh
    from dalsegno.operations.proving.request import ProofRequest
    from dalsegno.operations.querying import QueryResult
    from dalsegno.operations.rewriting import RewrittenTable


class Tables:
    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self, catalog: str | None = None, *, limit: int = 1000, cursor: str | None = None) -> Page[TableName]:
        """The tables of a catalog, by name."""
        return sorted_page(self._context.lake.tables(catalog), limit, cursor, "tables", str)

    def check_catalogs(self, name: str | None = None) -> tuple[CatalogReport, ...]:
        """What each catalog lets us do."""
        self._context.require("tables.check_catalogs")
        return tuple(self._context.lake.check_catalogs(name))

    def spark_configuration(self, name: str | None = None) -> Mapping[str, str]:
        """What makes Spark see the same catalogs. It may hold passwords."""
        self._context.require("tables.spark_configuration")
        from dalsegno.iceberg.catalogs import spark_configuration  # noqa: PLC0415 - slow import

        settings = self._context.settings
        chosen = [settings.catalog(name)] if name else [*settings.catalogs.values()]
        return {key: value for catalog in chosen for key, value in spark_configuration(catalog).items()}

    def refreshes(self, target: str, *, limit: int = 20, cursor: str | None = None) -> Page[Refresh]:
        """What the runs of a declared table did, newest first."""
        from dalsegno.capture.lake_reader import table_name  # noqa: PLC0415 - slow import
        from dalsegno.store import refresh_queries  # noqa: PLC0415

        name, after = table_name(self._context.settings, target), key_of(cursor, "refreshes")
        with self._context.database.reading() as connection:
            found = refresh_queries.refreshes_of(connection, name, limit=limit + 1, after=after)
        return page_of(found, limit, "refreshes", lambda refresh: refresh.unit_id)

    def rewrite(
        self, query: str, target: str, *, keys: Sequence[str] = (), facts: Sequence[str] = ()
    ) -> RewrittenTable:
        """What becomes of a SELECT that declares a table: strategies, reasons, SQL. Nothing is executed."""
        from dalsegno.operations.rewriting import rewrite  # noqa: PLC0415 - slow import

        return rewrite(self._context.lake, query, target, keys=keys, facts=facts)

    def prove(self, request: ProofRequest, *, say: Callable[[str], None] = lambda _: None) -> Proof:
        """Replay the history of a SELECT's sources on clones; compare the target with the SELECT after each step."""
        self._context.require("tables.prove")
        from dalsegno.operations.proving.replay import prove  # noqa: PLC0415 - slow import
        from dalsegno.operations.proving.stored import remember  # noqa: PLC0415

        lake = self._context.lake
        proof = prove(lake, request, by=self._context.caller.name, now=self._context.clock(), say=say)
        remember(self._context.store, proof)
        return proof

    def sql(self, query: str, *, limit: int, say: Callable[[str], None]) -> QueryResult:
        """The first rows that a query returns, on the warm Spark."""
        self._context.require("tables.sql")
        from dalsegno.operations.querying import query as execute  # noqa: PLC0415 - slow import

        return execute(self._context.settings, query, limit=limit, say=say)
