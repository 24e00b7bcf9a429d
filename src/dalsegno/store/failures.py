"""What a driver complains about, in our words. A URL is never shown: it may hold a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from dalsegno.errors import DalsegnoError, UserError
from dalsegno.store.failure_hints import store_failed

#: Classes of PostgreSQL's codes that are about the values: data exception, program limit exceeded.
_NEVER = frozenset({"22", "54"})


@dataclass(frozen=True)
class Place:
    """Where a database is, fit to be shown."""

    url: URL

    def __str__(self) -> str:
        if self.url.get_backend_name() == "sqlite":
            return str(self.url.database)
        port = f":{self.url.port}" if self.url.port else ""
        return f"postgresql://{self.url.host or ''}{port}/{self.url.database or ''}"

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the driver raises into ``StoreFailed``, or ``UserError`` if it can never work."""
        try:
            yield
        except (DBAPIError, PoolTimeout) as error:
            cause = _first_cause(error)
            said = " ".join(str(cause.orig if isinstance(cause, DBAPIError) else cause).split())
            for secret in filter(None, self._secrets()):
                said = said.replace(secret, "***")
            if _sqlstate(cause)[:2] in _NEVER:
                raise UserError(f"The store cannot hold this: {said.rstrip('.?')}.") from error
            raise store_failed(self, said) from error
        except StatementError as error:
            # A value that cannot become a column's.
            if isinstance(error.orig, DalsegnoError):
                raise error.orig from None
            raise

    def _secrets(self) -> Iterator[str]:
        yield str(self.url.password or "")
        for key, value in self.url.normalized_query.items():
            if "password" in key:
                yield from value


def _sqlstate(error: BaseException) -> str:
    """PostgreSQL's code for what went wrong; empty if there is none."""
    return str(getattr(getattr(error, "orig", None), "sqlstate", None) or "")


def _first_cause(error: BaseException) -> BaseException:
    """On a full disk SQLite rolls everything back by itself, and going back to a savepoint then fails as well."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, DBAPIError | PoolTimeout) and "no such savepoint" not in str(link):
            return link
        link = link.__context__
    return error
