"""IpCapture, ICDC and IpCommit: what changed since the last checkpoint as a table, and the checkpoint's move.

A capture looks at metadata only, so it is done while the step is started. It may be repeated: what was captured and not
committed is handed out again, by whichever run asks for it. A commit does nothing but say so: the engine moves the
checkpoint in the transaction that saves the step's success. What an ICDC step captures and no step commits, the engine
commits with the success of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from dalsegno.capture.changes import Changes
from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.errors import DalsegnoError, UserError
from dalsegno.hints import in_step
from dalsegno.iceberg.predicates import EVERYTHING, NOTHING, any_of
from dalsegno.iceberg.values import order_of, partition_path
from dalsegno.model.captures import Capture, CapturedTable, Role, actor_of_run, run_of_actor
from dalsegno.model.outcomes import Failed, FailureKind, Outcome, Succeeded
from dalsegno.model.runs import RunStatus
from dalsegno.spec.step_types import CONTINUE, FAIL, SKIP
from dalsegno.steps.capture_fields import capture_options
from dalsegno.steps.contract import Finished, Work
from dalsegno.steps.fields import Fields
from dalsegno.store import run_queries

COMMIT_BLOCK = "ip_commit"
#: Predicates of each source, about its own columns; and what they are of a capture that does not have them.
_FILTERS = {
    "partition_filter": EVERYTHING,
    "new_partition_filter": NOTHING,
    "reopened_partition_filter": EVERYTHING,
}


class _AtOnce:
    """A type whose steps are done when they are started."""

    raw: ClassVar[frozenset[str]] = frozenset()

    def start(self, work: Work) -> Finished:
        return Finished(self.outcome(work))

    def poll(self, work: Work, patience: float) -> Finished:
        return self.start(work)

    def cancel(self, work: Work) -> None:
        """Nothing is running. What was captured waits for the next run."""

    def outcome(self, work: Work) -> Outcome:
        raise NotImplementedError


class CaptureRunner(_AtOnce):
    """``ip_capture: {source_tables: […], data_operations: […], …}``."""

    name: ClassVar[str] = "IpCapture"
    block: ClassVar[str] = "ip_capture"

    def tables(self, fields: Fields) -> tuple[list[str], str | None]:
        """The sources, and what the change table is to be called if that is not left to us."""
        tables = fields.texts("source_tables")
        if not tables:
            raise UserError(f"{fields.block}.source_tables is needed: one table or several.")
        return tables, None

    def outcome(self, work: Work) -> Outcome:
        fields = Fields(work, self.block)
        quiet = fields.text("when_nothing_new") or SKIP
        if quiet not in (SKIP, FAIL, CONTINUE):
            raise UserError(f"{self.block}.when_nothing_new is {quiet!r}, expected skip, fail or continue.")
        with Lake.open(work.settings) as lake:
            lake.actor = actor_of_run(work.workflow_id, work.run_number)
            try:
                changes = _captured(lake, work, fields, *self.tables(fields))
            except DalsegnoError as error:
                inside = in_step(error.actions, work.workflow_id, work.step_id, self.block, error.advice)
                error.hint = inside or error.hint
                raise
            if changes.capture is not None and (other := taken_over(lake, changes, lake.actor)):
                return Failed(
                    FailureKind.PLATFORM,
                    f"Capture {changes.id} is being processed by {other}, which has not ended.",
                    hint="It is handed over when that run has ended without committing it.",
                )
            return _outcome_of(work, changes, quiet, fields.texts("range_columns"))


class IcdcRunner(CaptureRunner):
    """``sourceTable`` and ``targetTable``: one source, and a change table that has the same name in every run."""

    name: ClassVar[str] = "ICDC"
    block: ClassVar[str] = "icdc"

    def tables(self, fields: Fields) -> tuple[list[str], str | None]:
        source, target = fields.one_of("sourceTable", "source_table"), fields.one_of("targetTable", "target_table")
        return [fields.required(source)], fields.required(target)


class CommitRunner(_AtOnce):
    """``ip_commit: {capture_step: …}``."""

    name: ClassVar[str] = "IpCommit"

    def outcome(self, work: Work) -> Outcome:
        fields = Fields(work, COMMIT_BLOCK)
        capture_id = work.filled(f"${{{fields.required('capture_step')}.capture_id}}").text
        if not capture_id:
            _say(work, ["There was nothing new, so there is nothing to commit."])
            return Succeeded()
        with Lake.open(work.settings) as lake:
            lake.refuse_foreign_rows(lake.store.capture(capture_id))
        _say(work, [f"Capture {capture_id} is processed: the checkpoint moves with this step's success."])
        return Succeeded({"capture_id": capture_id}, commits=capture_id)


def _captured(lake: Lake, work: Work, fields: Fields, tables: list[str], target: str | None) -> Changes:
    consumer = fields.text("consumer") or consumer_of_workflow(work.workflow_id)
    options = capture_options(fields)
    options["target"], options["is_refresh"] = target, work.full_refresh is not None
    if work.full_refresh:
        options["start"], options["is_start_for_first"] = "full", False
    return lake.capture(*tables, consumer=consumer, **options)


def taken_over(lake: Lake, changes: Changes, run: str) -> str | None:
    """Make a pending capture this run's own; or the other run that has it and has not ended."""
    owner = lake.store.capture(changes.id).created_by
    while owner != run:
        if is_open_run(lake, owner):
            return owner
        lake.store.hand_over(changes.id, owner, run)
        owner = lake.store.capture(changes.id).created_by
    return None


def is_open_run(lake: Lake, actor: str) -> bool:
    """Whether somebody who captured is a run that has not ended."""
    named = run_of_actor(actor)
    if named is None:
        return False
    with lake.store.database.reading() as connection:
        row = run_queries.numbered(connection, *named)
    return row is not None and not RunStatus(row["status"]).is_final


def _outcome_of(work: Work, changes: Changes, quiet: str, range_columns: Sequence[str]) -> Outcome:
    """What later steps can use, and what people can read."""
    if changes.capture is None:
        looked = ", ".join(str(increment.table) for increment in changes.increments)
        _say(work, [f"Nothing new in {looked} for {changes.consumer}."])
        if quiet == FAIL:
            return Failed(FailureKind.FATAL, f"There is nothing new in {looked} for {changes.consumer}.")
        nothing = {"has_changes": False, "capture_id": "", "change_table": "", "rows": 0, "files": 0, "bytes": 0}
        nothing["is_full"] = False
        names = [increment.table.identifier[-1] for increment in changes.increments]
        filters = {f"{name}{suffix}": NOTHING for name in _FILTERS for suffix in _suffixes(names)}
        filters |= {f"range_filter_{_plain(column)}": NOTHING for column in range_columns}
        return Succeeded({**nothing, **filters, "has_more": changes.has_more}, goes_on=quiet == CONTINUE)
    tables = changes.capture.tables
    _say(work, [_sentence(captured, changes) for captured in tables])
    return Succeeded(outputs_of(changes.capture, is_resumed=changes.is_resumed))


def outputs_of(capture: Capture, *, is_resumed: bool) -> dict[str, Any]:
    """The parameters by which later steps know a capture."""
    tables = capture.tables
    outputs: dict[str, Any] = {
        "has_changes": True,
        "capture_id": capture.id,
        "is_resumed": is_resumed,
        "is_full": any(captured.is_full for captured in tables),
        "has_more": any(captured.details.get("has_more", False) for captured in tables),
        "files": sum(captured.details["files"] for captured in tables),
        "rows": sum(captured.details["rows"] for captured in tables),
        **_sizes(tables),
        **_ranges(tables),
        **_partitions(tables),
    }
    for captured, suffix in zip(tables, _suffixes([each.table.identifier[-1] for each in tables]), strict=True):
        of_table = {**_names(captured), **_filters(captured)}
        outputs |= {f"{name}{suffix}": value for name, value in of_table.items()}
    return outputs


def _suffixes(names: Sequence[str]) -> list[str]:
    """What names of parameters end with: nothing for one source; for several, the last word of each one's name."""
    return [""] if len(names) == 1 else [f"_{name}" for name in names]


def _names(captured: CapturedTable) -> dict[str, Any]:
    found: dict[str, Any] = {"source_table": str(captured.table), "change_table": str(captured.change_table)}
    if Role.BEFORE in captured.tables:
        found["before_table"] = str(captured.tables[Role.BEFORE])
    if captured.details.get("changes_view"):
        found["changes_view"] = str(captured.details["changes_view"])
    for end, position in (("after", captured.after), ("upto", captured.upto)):
        if position.snapshot_id is not None:
            found[f"{end}_snapshot"] = position.snapshot_id
    return found


def _filters(captured: CapturedTable) -> dict[str, str]:
    return {name: captured.details.get(name, unknown) for name, unknown in _FILTERS.items()}


def _sizes(tables: Iterable[CapturedTable]) -> dict[str, Any]:
    sizes = [captured.details["bytes"] for captured in tables]
    return {} if None in sizes else {"bytes": sum(sizes)}


def _ranges(tables: Iterable[CapturedTable]) -> dict[str, Any]:
    """The smallest and the largest value of each column over all sources; left out if one source does not know them.

    As a predicate it is: then every row may be meant.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for captured in tables:
        for column, ends in captured.details["ranges"].items():
            found.setdefault(column, []).append(ends)
    found_ranges: dict[str, Any] = {}
    for column, ranges in found.items():
        found_ranges[f"range_filter_{_plain(column)}"] = any_of(each.get("filter", EVERYTHING) for each in ranges)
        ends = [ends for ends in ranges if ends["min"] is not None]
        kinds = {each.get("type") for each in ends}
        # What is one name for a number here and a text there has no order.
        if len(kinds) == 1 and not any(each["unknown_because"] for each in ranges):
            order = order_of(str(*kinds))
            name = _plain(column)
            found_ranges[f"min_{name}"] = min((each["min"] for each in ends), key=order)
            found_ranges[f"max_{name}"] = max((each["max"] for each in ends), key=order)
    return found_ranges


def _plain(column: str) -> str:
    return re.sub(r"\W", "_", column)


def _partitions(tables: Iterable[CapturedTable]) -> dict[str, Any]:
    listed = [captured.details["partitions"] for captured in tables]
    if any(each is None for each in listed):
        return {}
    by_novelty: dict[str, list[str]] = {}
    for partition in (partition for each in listed for partition in each):
        path = partition_path(partition["values"])
        by_novelty.setdefault(partition["novelty"], []).append(path)
    every = sorted({path for paths in by_novelty.values() for path in paths})
    return {
        "partitions": every,
        "new_partitions": sorted(by_novelty.get("new", [])),
        "reopened_partitions": sorted({*every} - {*by_novelty.get("new", [])}),
    }


def _sentence(captured: CapturedTable, changes: Changes) -> str:
    details = captured.details
    again = ", as an earlier run left it" if changes.is_resumed else ""
    exact = "" if details["exact"] else f"; not exact: {details['inexact_because']}"
    if details.get("may_be_more"):
        exact = f"; it may be more: {details['may_be_more']}"
    more = "; what came later waits for the next run" if details.get("has_more") else ""
    return (
        f"Captured {captured.table} up to {captured.upto}{again}: {details['rows']:,} rows in {details['files']:,} "
        f"files as {captured.change_table} (capture {changes.id}){exact}{more}."
    )


def _say(work: Work, lines: Iterable[str]) -> None:
    with work.log.open("a", encoding="utf-8") as file:
        file.writelines(f"[dalsegno] {line}\n" for line in lines)
