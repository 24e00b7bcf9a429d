"""Tokens: whoever has one may use the server. The store knows their digests alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from dalsegno.errors import PlatformError
from dalsegno.hints import Verb, action
from dalsegno.private_files import make_private_folder
from dalsegno.store import Store, audit_log, tokens

#: Makes a token known as one, to people and to programs that look for secrets that were left lying about.
_PREFIX = "dalsegno_"
_BYTES = 32
_FORM = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


def first_token(
    store: Store, *, by: str, now: datetime, hand_over: Callable[[str], object] = lambda _: None
) -> str | None:
    """A token, if there has never been one. If it cannot be handed over, there still is none."""
    token = _new()
    with store.database.writing() as connection:
        if not tokens.add_first(connection, _digest(token), by=by, now=now):
            return None
        audit_log.describe("token", "server", after={"first": True})
        hand_over(token)
    return token


def new_token(store: Store, *, by: str, now: datetime) -> str:
    """A token; those that there were are no longer valid."""
    token = _new()
    with store.database.writing() as connection:
        before = {"valid": len(tokens.valid(connection))}
        audit_log.describe("token", "server", before, {"valid": 1})
        tokens.replace_all(connection, _digest(token), by=by, now=now)
    return token


def write_token(file: Path, token: str) -> Path:
    """Into a file that nobody else can read, not even for a moment."""
    made = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    try:
        make_private_folder(file.parent)
        with open(made, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
            opened.write(f"{token}\n")
        return made.replace(file)
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise PlatformError(
            f"The first token cannot be written to {file}: {error.strerror}.",
            hint="Check that this user may write there.",
            actions=[action("Or create a token yourself", Verb.CREATE_TOKEN)],
        ) from error


def is_well_formed(token: str) -> bool:
    return _FORM.fullmatch(token) is not None


@dataclass(frozen=True)
class Tokens:
    """Those that a store knows."""

    store: Store

    def is_valid(self, token: str) -> bool:
        return is_one_of(self.valid_digests(), token)

    def valid_digests(self) -> list[str]:
        with self.store.database.reading() as connection:
            return tokens.valid(connection)


def is_one_of(known: Sequence[str], token: str) -> bool:
    digest = _digest(token)
    # Every one is looked at, each for the same time: how long it takes says nothing of what is right.
    return sum(hmac.compare_digest(digest, each) for each in known) > 0


def _new() -> str:
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def _digest(token: str) -> str:
    """Nobody can guess one of so many, so a plain digest is enough."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
