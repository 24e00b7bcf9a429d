"""What a capture is asked for: one request for ``capture``, ``plan``, steps and triggers."""

from __future__ import annotations

from dataclasses import dataclass

from dalsegno.model.captures import ADDED_FILES, CaptureSpec
from dalsegno.model.starts import UNBOUNDED, AfterSnapshot, Bound, Since, Start
from dalsegno.model.tables import TableName


@dataclass(frozen=True)
class TableRequest:
    """One table as one consumer captures it."""

    table: TableName
    consumer: str
    branch: str = "main"
    spec: CaptureSpec = ADDED_FILES
    #: Where a first capture begins, if the user chose it.
    start: Start | None = None
    bound: Bound = UNBOUNDED
    #: Where the range ends, if not at the head of the branch.
    end: AfterSnapshot | Since | None = None
    #: Ignore the start where the consumer has a checkpoint, instead of refusing it: a step says it in every run.
    is_start_for_first: bool = False

    @property
    def key(self) -> str:
        return request_key(str(self.table), self.consumer)


def request_key(table: str, consumer: str) -> str:
    """What a table and its consumer are known by together."""
    return f"{table} for {consumer}"


@dataclass(frozen=True)
class DetailOptions:
    """What to find out about a capture beyond the change table itself."""

    #: Columns whose smallest and largest value are wanted.
    range_columns: tuple[str, ...] = ()
    #: List the touched partitions; None: if there are few files.
    partitions: bool | None = None
    #: What is written for the capture replaces what was written before.
    is_refresh: bool = False


@dataclass(frozen=True)
class CaptureRequest:
    """Tables that one consumer captures together, at one cut."""

    consumer: str
    tables: tuple[TableRequest, ...]
    details: DetailOptions = DetailOptions()
    #: The name of the change table, if the user chose one.
    target: TableName | None = None
