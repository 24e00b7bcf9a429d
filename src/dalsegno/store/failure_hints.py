"""What a driver's complaint means, and what to do about it."""

from __future__ import annotations

from dalsegno.errors import StoreFailed

#: What we look for in a driver's words, and what to do then.
HINTS = {
    "is locked": "Another process has been writing for long. Try again; nothing was changed.",
    "lock timeout": "Another process has been writing for long. Try again; nothing was changed.",
    "disk is full": "Nothing was changed. Free some space and try again.",
    "readonly database": "Give this user the right to write the file and the folder it is in.",
    "unable to open": "Check that the folder exists and that this user may write to it.",
    "not a database": "The file holds something else. Name another file in the store's url.",
    "malformed": "The file is damaged. Restore it from a backup; SQLite's own `.recover` reads what is left.",
    "refused": "Check that PostgreSQL runs there and that the store's url is right.",
    "could not translate host name": "Check the host in the store's url.",
    "failed to resolve host": "Check the host in the store's url.",
    "authentication failed": "Check the user and the password in the store's url.",
    "no password supplied": "Put a password into the store's url, or into PGPASSWORD or ~/.pgpass.",
    "does not exist": "Create it, or name another in the store's url.",
    "already exists": "Something else has tables of these names there: give the store a database of its own.",
    "permission denied": "Give this user the right to create and change tables there.",
}

#: True of everything the store does: see the package's docstring.
OTHERWISE = "Try again: every operation of the store may be repeated."


def store_failed(place: object, said: str) -> StoreFailed:
    """``place`` and ``said`` hold no password."""
    hint = next((hint for part, hint in HINTS.items() if part in said.lower()), OTHERWISE)
    return StoreFailed(f"The database {place} failed: {said.rstrip('.?')}.", hint=hint)
