"""Tokens: whoever has one may use the server. The store knows their digests alone."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime

from dalsegno.store import Store, tokens

#: Makes a token known as one, to people and to programs that look for secrets that were left lying about.
_PREFIX = "dalsegno_"


def first_token(store: Store, *, by: str, now: datetime) -> str | None:
    """A token, if there has never been one."""
    token = _new()
    with store.database.writing() as connection:
        return token if tokens.add_first(connection, _digest(token), by=by, now=now) else None


def new_token(store: Store, *, by: str, now: datetime) -> str:
    """A token; those that there were are no longer valid."""
    token = _new()
    with store.database.writing() as connection:
        tokens.replace_all(connection, _digest(token), by=by, now=now)
    return token


def is_valid(store: Store, token: str) -> bool:
    digest = _digest(token)
    with store.database.reading() as connection:
        known = tokens.valid(connection)
    # Every one is looked at, each for the same time: how long it takes says nothing of what is right.
    return sum(hmac.compare_digest(digest, each) for each in known) > 0


def _new() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _digest(token: str) -> str:
    """Nobody can guess one of so many, so a plain digest is enough."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
