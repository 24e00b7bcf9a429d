"""Which statements an atomic step may have: those that change rows, and that Spark can direct to a branch.

A session with ``spark.wap.branch`` set reads and writes that branch of a table, by whatever name a statement, a view
or a subquery reaches it. Three things would bypass it, and are refused: other settings of that kind, names of branches,
and metadata tables, which show the main branch.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dalsegno.spark.forms.form import Doubt, Effect, Form, Name
from dalsegno.spark.forms.trees import tree_of
from dalsegno.spark.forms.words import Words, for_parser, is_name, unquoted

#: Settings that say where Iceberg writes.
SETTINGS = "spark.wap."
#: How forms begin that change rows and nothing else.
_ROW_CHANGES = ("INSERT ", "FROM ", "MERGE", "UPDATE", "DELETE", "TRUNCATE TABLE")
_WRITES = frozenset({Effect.STAMPED, Effect.UNSTAMPED})
_METADATA_TABLES = frozenset(
    [
        *("history", "metadata_log_entries", "snapshots", "refs", "manifests", "partitions", "position_deletes"),
        *("entries", "files", "data_files", "delete_files", "changes"),
        *("all_entries", "all_files", "all_data_files", "all_delete_files", "all_manifests"),
    ]
)
_BRANCH = "branch_"


def writes(form: Form) -> bool:
    return form.effect in _WRITES


def refusal(statement: str, form: Form) -> str | None:
    """Why a statement cannot be part of an atomic step, as the end of a sentence; None if it can."""
    if form.effect is Effect.UNKNOWN:
        return f"what it writes cannot be known, because {form.because}" if form.because else "its form is unknown"
    if form.effect is Effect.SESSION and SETTINGS in statement.lower():
        return f"settings {SETTINGS}* are what leads an atomic step to its branch"
    if not writes(form):
        return None
    if form.is_ddl or form.creates or form.drops or not form.name.startswith(_ROW_CHANGES):
        return "it does something else than to change rows, and a branch cannot hold that back"
    return None


def way_around(statement: str, target: Name) -> str | None:
    """How a statement reads the target elsewhere than on its branch, as the end of a sentence; None if it does not."""
    for name, is_by_text in _tables(statement):
        table, last = name[:-1], name[-1].lower()
        if _may_be(table, target) and last.startswith(_BRANCH):
            return f"it names the branch {name[-1].removeprefix(_BRANCH)!r} of the table"
        if _may_be(table, target) and last in _METADATA_TABLES:
            return f"{'.'.join(name)} shows the main branch, not what the step has written"
        if is_by_text and _may_be(name, target):
            return "it names a branch or a tag of the table; name a snapshot by its number"
    return None


def _may_be(name: Name, target: Name) -> bool:
    """Whether a name, which may leave out catalog and namespace, can mean the table."""
    parts = [part.lower() for part in name]
    return 0 < len(parts) <= len(target) and parts == [part.lower() for part in target][-len(parts) :]


def _tables(statement: str) -> Iterator[tuple[Name, bool]]:
    """The tables that a statement names, and whether it does so with ``VERSION AS OF 'text'``."""
    words = Words(statement)
    try:
        tree = tree_of(for_parser(words.tokens))
    except Doubt:
        # Every name that it has might be a table's.
        yield from ((name, False) for name in _paths(words))
        return
    for table in tree.find_all(exp.Table):
        version = table.args.get("version")
        is_by_text = version is not None and version.name == "VERSION" and version.expression.is_string
        yield tuple(part.name for part in table.parts), is_by_text


def _paths(words: Words) -> Iterator[Name]:
    at = 0
    while at < len(words.tokens):
        parts: list[str] = []
        while at < len(words.tokens) and is_name(words.tokens[at]):
            parts.append(unquoted(words.tokens[at]))
            at += 1
            if at >= len(words.tokens) or words.tokens[at].word != ".":
                break
            at += 1
        if parts:
            yield tuple(parts)
        else:
            at += 1
