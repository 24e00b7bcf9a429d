"""Incremental triggers as they are written, and the rules that follow from that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar
from uuid import NAMESPACE_OID, uuid5

from dalsegno.errors import UserError
from dalsegno.model.workflow import Workflow
from dalsegno.spec.canonical import given
from dalsegno.spec.captures import WrittenCapture, declared_query, is_declared, watched_captures
from dalsegno.spec.durations import duration
from dalsegno.spec.fields import Fields, is_null, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Scalar, SourceLocation
from dalsegno.spec.problems import meant
from dalsegno.spec.reading.context import Reading
from dalsegno.triggers.spec import TriggerLanguage
from dalsegno.triggers.table_triggers.model import IncrementalTrigger, Quorum, Rules

INCREMENTAL = "incremental"
#: More than any table has.
MOST = 10**15
_LONGEST_NAME = 300


class TableLanguage(TriggerLanguage[IncrementalTrigger]):
    fields: ClassVar[tuple[str, ...]] = (INCREMENTAL,)

    def read(self, fields: Fields, reading: Reading) -> IncrementalTrigger:
        """``incremental: {tables: […], …}``; the tables alone, or nothing where those that are captured are meant."""
        key, node = fields.node.entries[INCREMENTAL]
        fields.find(INCREMENTAL)
        fields.refuse_rest("an incremental trigger")
        inner = MapNode(key.mark)
        if isinstance(node, MapNode):
            inner = MapNode(key.mark, node.entries)
        elif isinstance(node, ListNode) or isinstance(node.value, str):
            inner.entries["tables"] = (Scalar("tables", key.mark, "tables"), node)
        elif not is_null(node):
            fields.at(f"'incremental' must be a mapping or a list of tables, found {kind_of(node)}", node, INCREMENTAL)
        return self.read_stored(Fields(inner, fields.place(INCREMENTAL), reading.problems), reading)

    def read_stored(self, fields: Fields, reading: Reading) -> IncrementalTrigger:
        """What stands under ``incremental``."""
        tables = _tables(fields)
        trigger = IncrementalTrigger(
            tables=tuple(tables),
            when=fields.choice(Quorum, "when") or Quorum.ANY,
            quiet=_duration(fields, "quiet"),
            min_interval=_duration(fields, "min_interval"),
            max_wait=_duration(fields, "max_wait"),
            min_snapshots=fields.number("min_snapshots", low=1, high=MOST),
            min_files=fields.number("min_files", low=1, high=MOST),
            min_rows=fields.number("min_rows", low=1, high=MOST),
            min_bytes=fields.number("min_bytes", low=1, high=MOST),
            branch=fields.text("branch"),
        )
        fields.refuse_rest("an incremental trigger")
        _refuse_contradictions(fields, trigger)
        reading.triggers.append((trigger, fields.mark, tables))
        return trigger

    def write(self, trigger: IncrementalTrigger) -> dict[str, Any]:
        return given(
            tables=list(trigger.tables),
            when=None if trigger.when is Quorum.ANY else trigger.when,
            quiet=trigger.quiet,
            min_interval=trigger.min_interval,
            max_wait=trigger.max_wait,
            min_snapshots=trigger.min_snapshots,
            min_files=trigger.min_files,
            min_rows=trigger.min_rows,
            min_bytes=trigger.min_bytes,
            branch=trigger.branch,
        )

    def check(self, workflow: Workflow, reading: Reading) -> None:
        """What no step captures stays unprocessed, and would start runs for nothing again and again."""
        captures = watched_captures(workflow) if workflow.triggers_of(IncrementalTrigger) else []
        names: set[str] = set()
        for trigger, mark, places in reading.triggers:
            if not isinstance(trigger, IncrementalTrigger):
                continue
            of_branch = [each for each in captures if each.is_of_branch(trigger.branch)]
            is_known = any(each.tables for each in of_branch) or _has_select(workflow)
            if not trigger.tables and not is_known:
                hint = "name them in 'tables', or add a step: type: IpCapture, ip_capture: {source_tables: [...]}"
                reading.problems.add("there is no table to watch: no step says which it captures", mark, hint=hint)
            for table in trigger.tables:
                if not any(each.may_capture(table) for each in of_branch):
                    where = f" on branch {trigger.branch!r}" if trigger.branch else ""
                    message = f"no step captures {table!r}{where}, so no run would process its changes"
                    reading.problems.add(message, places.get(table, mark), hint=_way_to_capture(table, captures))
            if watch_name(trigger) in names:
                reading.problems.add("another trigger watches the same tables", mark, hint="say all of it in one")
            names.add(watch_name(trigger))


def _has_select(workflow: Workflow) -> bool:
    """Whether a step declares a table by a SELECT whose sources are found when it is pushed."""
    declared = [declared_query(step) for step in workflow.all_steps() if is_declared(step)]
    return any(found is not None and "${" not in found[1] for found in declared)


def _tables(fields: Fields) -> dict[str, SourceLocation]:
    found: dict[str, SourceLocation] = {}
    for text, mark in fields.texts("tables"):
        if text in found:
            fields.problems.add(f"the table {text!r} is given twice", mark, fields.place("tables"))
        if "$" in text:
            hint = "write its name: it is watched before there is a run with parameters"
            fields.problems.add(f"{text!r} is not a table that can be watched", mark, fields.place("tables"), hint)
        found.setdefault(text, mark)
    return found


def _duration(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and duration(text) is None:
        fields.add(f"{text!r} is not a duration", name, "write for instance 30s or 10min")
    return text


def _refuse_contradictions(fields: Fields, trigger: IncrementalTrigger) -> None:
    """What waits at most so long cannot wait longer for something else."""
    longest = duration(trigger.max_wait or "")
    for name, text in (("quiet", trigger.quiet), ("min_interval", trigger.min_interval)):
        wanted = duration(text or "")
        if longest is not None and wanted is not None and wanted > longest:
            message = f"{name!r} is {text}, which is longer than 'max_wait', {trigger.max_wait}"
            fields.add(message, name, "a run is started after max_wait, whatever else is said: give it more time")


def _way_to_capture(table: str, captures: Sequence[WrittenCapture]) -> str:
    for each in captures:
        if each.may_capture(table):
            return f"{each.step_id!r} captures it on branch {each.branch!r}"
    near = meant(table, [known for each in captures for known in each.tables or ()])
    return near or f"add a step: type: IpCapture, ip_capture: {{source_tables: [{table}]}}"


# What it means.


def watch_name(trigger: IncrementalTrigger) -> str:
    """What it watches, in one way of writing: in another version of the workflow, the same is the same trigger."""
    tables = ", ".join(sorted(trigger.tables)) or "what is captured"
    name = f"{tables} on {trigger.branch}" if trigger.branch else tables
    # A database finds triggers by their names, which must not be too long for that.
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}… {uuid5(NAMESPACE_OID, name)}"


def rules_of(trigger: IncrementalTrigger) -> Rules:
    """Of a trigger that nobody has checked yet, too."""
    return Rules(
        name=watch_name(trigger),
        needs_all=trigger.when is Quorum.ALL,
        quiet=_span("quiet", trigger.quiet or "0"),
        min_interval=_span("min_interval", trigger.min_interval or "0"),
        max_wait=None if trigger.max_wait is None else _span("max_wait", trigger.max_wait),
        min_snapshots=trigger.min_snapshots,
        min_files=trigger.min_files,
        min_rows=trigger.min_rows,
        min_bytes=trigger.min_bytes,
    )


def _span(name: str, text: str) -> timedelta:
    found = duration(text)
    if found is None:
        raise UserError(f"{name} is {text!r}, which is not a duration.", hint="Write for instance 30s or 10min.")
    return found


LANGUAGE = TableLanguage()
