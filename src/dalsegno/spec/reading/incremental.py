"""Tables whose changes begin a run."""

from __future__ import annotations

from dalsegno.model.workflow import IncrementalTrigger, Quorum
from dalsegno.spec.durations import duration
from dalsegno.spec.fields import Fields, is_null, kind_of
from dalsegno.spec.nodes import ListNode, MapNode, Scalar, SourceLocation
from dalsegno.spec.reading.context import Reading

INCREMENTAL = "incremental"
#: More than any table has.
MOST = 10**15


def read_incremental_trigger(fields: Fields, reading: Reading) -> IncrementalTrigger:
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
    return read_watched_tables(Fields(inner, fields.place(INCREMENTAL), reading.problems), reading)


def read_watched_tables(fields: Fields, reading: Reading) -> IncrementalTrigger:
    """What stands under ``incremental``, and in JSON in the list of such triggers."""
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
    reading.watched.append((fields.mark, tables))
    return trigger


def _tables(fields: Fields) -> dict[str, SourceLocation]:
    found: dict[str, SourceLocation] = {}
    for text, mark in fields.texts("tables"):
        if text in found:
            fields.problems.add(f"the table {text!r} is given twice", mark, fields.place("tables"))
        if "$" in text:
            hint = "write its name: it is watched before there is a run with parameters"
            fields.problems.add(f"{text!r} is no table that can be watched", mark, fields.place("tables"), hint)
        found.setdefault(text, mark)
    return found


def _duration(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and duration(text) is None:
        fields.add(f"{text!r} is no duration", name, "write for instance 30s or 10min")
    return text


def _refuse_contradictions(fields: Fields, trigger: IncrementalTrigger) -> None:
    """What waits at most so long cannot wait longer for something else."""
    longest = duration(trigger.max_wait or "")
    for name, text in (("quiet", trigger.quiet), ("min_interval", trigger.min_interval)):
        wanted = duration(text or "")
        if longest is not None and wanted is not None and wanted > longest:
            message = f"{name!r} is {text}, which is longer than 'max_wait', {trigger.max_wait}"
            fields.add(message, name, "a run is started after max_wait, whatever else is said: give it more time")
