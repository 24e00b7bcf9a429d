"""What users write of a capture → a request: the one place for commands, Python, steps and triggers.

A new option is a key of ``CaptureOptions``, a field of the request, and the line here that reads one from the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from dalsegno.capture.consumers import checked_consumer
from dalsegno.capture.key_columns import Keys, keys_by_table
from dalsegno.errors import UserError
from dalsegno.model.capture_requests import CaptureRequest, DetailOptions, TableRequest
from dalsegno.model.captures import capture_spec_of
from dalsegno.model.starts import Bound, parse_end, parse_start
from dalsegno.model.tables import TableName

#: It goes into SQL as it is.
_WORD = re.compile(r"[A-Za-z0-9_]+")


class CaptureOptions(TypedDict, total=False):
    """The options of a capture, as users write them."""

    #: Where a consumer without a checkpoint begins: earliest, latest, full, a snapshot's id or a moment.
    start: str | None
    #: Ignore ``start`` where the consumer has a checkpoint.
    is_start_for_first: bool
    #: Leave what came after this snapshot's id or moment for the next capture.
    upto: str | None
    max_snapshots: int | None
    max_bytes: int | None
    branch: str | None
    #: Columns whose smallest and largest value are wanted.
    ranges: Sequence[str]
    #: List the touched partitions; None: if there are few files.
    partitions: bool | None
    #: added, before_after, upserts, keys or range.
    changes: str | None
    #: The kinds of snapshots that may be in the range.
    operations: Sequence[str] | None
    #: The columns that identify a row: of every table, or by table, as a mapping or as ``table:column``.
    keys: Keys
    #: icdc for a change table, view for a view of the source's history.
    mode: str | None
    #: A name for the change table; captures get the same name one after the other.
    target: str | None
    #: What is written for the capture replaces what was written before.
    is_refresh: bool


def capture_request(
    name_of: Callable[[str], TableName],
    tables: Sequence[str],
    consumer: str,
    **options: Unpack[CaptureOptions],
) -> CaptureRequest:
    """The request that a user means, or an error that says which option is wrong."""
    if unknown := options.keys() - CaptureOptions.__annotations__.keys():
        raise TypeError(f"There is no option {', '.join(sorted(unknown))} of a capture.")
    names = table_names(name_of, tables)
    shared, own = keys_by_table(options.get("keys", ()), names, name_of)
    spec = capture_spec_of(
        options.get("changes"),
        options.get("operations"),
        shared,
        options.get("mode"),
        has_keys=own.keys() >= set(names),
    )
    start, upto, target = options.get("start"), options.get("upto"), options.get("target")
    bound = Bound(options.get("max_snapshots"), options.get("max_bytes"))
    return CaptureRequest(
        consumer=checked_consumer(consumer),
        tables=tuple(
            TableRequest(
                table=name,
                consumer=consumer,
                branch=options.get("branch") or "main",
                spec=spec.with_keys(own[name]) if name in own else spec,
                start=None if start is None else parse_start(start),
                bound=bound,
                end=None if upto is None else parse_end(upto),
                is_start_for_first=options.get("is_start_for_first", False),
            )
            for name in names
        ),
        details=DetailOptions(
            tuple(options.get("ranges", ())), options.get("partitions"), options.get("is_refresh", False)
        ),
        target=None if target is None else _checked_target(name_of(target), names),
    )


def table_names(name_of: Callable[[str], TableName], tables: Sequence[str]) -> tuple[TableName, ...]:
    names = tuple(map(name_of, tables))
    if not names or len(set(names)) != len(names):
        raise UserError("Name at least one table, and each only once.")
    return names


def _checked_target(target: TableName, sources: Sequence[TableName]) -> TableName:
    """A name that a change table of these sources can have."""
    if len(sources) != 1:
        raise UserError(f"One change table cannot be of {len(sources)} sources: {target} needs a single one.")
    [source] = sources
    if target == source:
        raise UserError(f"The change table of {source} cannot have its source's own name.", hint="Choose another name.")
    if target.catalog != source.catalog:
        raise UserError(
            f"A change table is in the catalog of its source: expected {source.catalog}, found {target.catalog} in "
            f"{target}."
        )
    if not all(_WORD.fullmatch(word) for word in target.identifier):
        raise UserError(
            f"{target} cannot be the name of a change table: expected words of letters, digits and underscores."
        )
    return target
