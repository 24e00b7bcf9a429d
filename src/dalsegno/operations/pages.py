"""Lists in pages, newest first, with a cursor that names where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

from dalsegno.errors import UserError
from dalsegno.model.stored_text import whole_number

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Sequence[T], Generic[T]):
    """A part of a list. What is added later never moves an item to another page."""

    items: tuple[T, ...]
    #: Where the next page begins; None: this is the last.
    next_cursor: str | None = None

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)


def page_of(found: Sequence[T], limit: int, kind: str, key: Callable[[T], object]) -> Page[T]:
    """The page that ``limit + 1`` items, or fewer, make: one more shows that there is another page."""
    shown = tuple(found[:limit])
    return Page(shown, cursor_of(kind, key(shown[-1])) if len(found) > limit else None)


def sorted_page(items: Iterable[T], limit: int, cursor: str | None, kind: str, key: Callable[[T], str]) -> Page[T]:
    """A page of a short list, by a key that no two share. Databases sort texts each in its own way, so we do it."""
    after = key_of(cursor, kind)
    found = sorted((item for item in items if after is None or key(item) > after), key=key)
    return page_of(found[: limit + 1], limit, kind, key)


def cursor_of(kind: str, key: object) -> str:
    return base64.urlsafe_b64encode(f"{kind} {key}".encode()).decode().rstrip("=")


def key_of(cursor: str | None, kind: str) -> str | None:
    """What a cursor names: the last item of the page before."""
    if cursor is None:
        return None
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    found, _, key = text.partition(" ")
    if found != kind or not key:
        raise wrong_cursor(cursor)
    return key


def number_of(cursor: str | None, kind: str) -> int | None:
    key = key_of(cursor, kind)
    if cursor is None or key is None:
        return None
    if (number := whole_number(key)) is None:
        raise wrong_cursor(cursor)
    return number


def wrong_cursor(cursor: str) -> UserError:
    return UserError(
        f"The cursor {cursor[:80]!r} does not belong to this list.", hint="Start from the first page: leave it out."
    )


def read_all(pages: Callable[[str | None], Page[T]]) -> list[T]:
    """Every item of a short list, page by page."""
    found: list[T] = []
    cursor: str | None = None
    while True:
        page = pages(cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found
