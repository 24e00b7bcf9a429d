"""Exit codes, errors, JSON, and how things are counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalsegno.cli.colours import paint
from dalsegno.errors import DalsegnoError, DataError, InvalidWorkflow, PlatformError, Problem, UserError

if TYPE_CHECKING:
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.pages import Page

#: The first that fits counts. 1 is left to programming errors, 2 is also what a wrong option gives.
EXIT_CODES: tuple[tuple[type[DalsegnoError], int], ...] = ((UserError, 2), (DataError, 3), (PlatformError, 4))

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


@contextmanager
def reporting(*, as_json: bool = False) -> Iterator[None]:
    """End the process with a sentence and a code of its own where one of our errors comes up.

    Every command that does something begins here. Its environment may hold passwords, which jobs must not see.
    """
    from dalsegno.steps.supervisor import hide_process  # noqa: PLC0415 - not for --help

    hide_process()
    try:
        yield
    except DalsegnoError as error:
        if as_json:
            from dalsegno.operations.json_values import error_fields  # noqa: PLC0415 - not for --help

            print(to_json({"error": error_fields(error)}))
        elif isinstance(error, InvalidWorkflow):
            # Each line begins with a place that terminals and editors can jump to.
            print(error.message, file=sys.stderr)
        else:
            print(f"{paint(error.code, 'red', stream=sys.stderr)}: {error.message}", file=sys.stderr)
            if error.hint:
                print(paint(f"  → {error.hint}", "dim", stream=sys.stderr), file=sys.stderr)
        raise SystemExit(exit_code(error)) from None


def exit_code(error: DalsegnoError) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


@contextmanager
def opened(settings_file: Path | None, *, as_json: bool = False) -> Iterator[Operations]:
    """What can be done with the settings in force, with errors reported."""
    with reporting(as_json=as_json):
        from dalsegno.operations.facade import Operations  # noqa: PLC0415 - not for --help

        with Operations.open(settings_file) as operations:
            yield operations


def show(value: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    print(to_json(value) if as_json else text(value))


def show_page(page: Page[Any], text: Callable[[Any], str], *, as_json: bool) -> None:
    """A page of a list, and on standard error how to see more."""
    show(list(page), text, as_json=as_json)
    if page.next_cursor:
        print(f"There are more: add --after {page.next_cursor}, or a larger --limit.", file=sys.stderr)


def show_all(pages: Callable[[str | None], Page[Any]], text: Callable[[Any], str], *, as_json: bool) -> None:
    """Every page of a short list."""
    from dalsegno.operations.pages import read_all  # noqa: PLC0415 - not for --help

    show(read_all(pages), text, as_json=as_json)


def tell_warnings(warnings: Iterable[Problem], file: Path) -> None:
    for each in warnings:
        print(each.located(str(file)), file=sys.stderr)


def to_json(value: Any) -> str:
    from dalsegno.operations.json_values import plain  # noqa: PLC0415 - not for --help

    return json.dumps(plain(value), ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)


def line_of(value: Any) -> str:
    """One line, for programs that read line by line, on a terminal as well."""
    from dalsegno.operations.json_values import plain  # noqa: PLC0415 - not for --help

    return json.dumps(plain(value), ensure_ascii=False)


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"


def size(count: int | None) -> str:
    if count is None:
        return "unknown size"
    amount, unit = float(count), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - kilo
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
