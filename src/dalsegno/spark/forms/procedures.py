"""Iceberg's stored procedures: which table they work on, and whether they may be executed again."""

from __future__ import annotations

from collections.abc import Sequence

from dalsegno.spark.forms.form import Doubt, Effect, Form, Name
from dalsegno.spark.forms.words import Words, is_string
from dalsegno.spark.statements import Token

#: A second execution finds its work done, or does it again with the same result.
_IDEMPOTENT = frozenset(
    [
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "expire_snapshots",
        "remove_orphan_files",
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
        "fast_forward",
        "compute_table_stats",
        "compute_partition_stats",
    ]
)
#: They add files or commits each time, or fail the second time.
_OTHERS = frozenset(
    [
        "add_files",
        "cherrypick_snapshot",
        "publish_changes",
        "migrate",
        "snapshot",
        "register_table",
        "rewrite_table_path",
    ]
)
_CREATING = frozenset({"migrate", "snapshot", "register_table"})


def of_call(words: Words) -> Form:
    words.take("CALL")
    called = words.name()
    procedure, name = called[-1].lower(), f"CALL {called[-1].lower()}"
    if len(called) < 2 or called[-2].lower() != "system":  # noqa: PLR2004
        raise Doubt("only the procedures of Iceberg are known")
    if procedure == "ancestors_of":
        return Form(Effect.READ, name, is_idempotent=True)
    if procedure == "create_changelog_view":
        return Form(Effect.SESSION, name)
    if procedure not in _IDEMPOTENT | _OTHERS:
        raise Doubt(f"the procedure {called[-1]!r} is not known")
    return Form(
        Effect.UNSTAMPED,
        name,
        _table(_argument(words, position=1 if procedure == "snapshot" else 0), called[:-2]),
        is_idempotent=procedure in _IDEMPOTENT,
        creates=procedure in _CREATING,
        is_ddl=True,
    )


def _argument(words: Words, position: int) -> Sequence[Token]:
    """The value of the argument ``table``, by its name or its position."""
    if not words.take("("):
        return ()
    given: list[list[Token]] = [[]]
    depth = 0
    for token in words.tokens[words.at :]:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth < 0:
            break
        if depth == 0 and token.word == ",":
            given.append([])
        else:
            given[-1].append(token)
    for number, value in enumerate(given):
        is_named = [token.word for token in value[1:3]] == ["=", ">"]
        if is_named and value[0].text.strip("`").lower() == "table":
            return value[3:]
        if not is_named and number == position:
            return value
    return ()


def _table(value: Sequence[Token], catalog: Name) -> Name:
    """A table as a procedure of a catalog understands its name; () if the text does not say it."""
    if len(value) != 1 or not is_string(value[0]):
        return ()
    text = value[0].text
    if text[0] not in "'\"" or text[-1] != text[0] or len(text) < 3 or "\\" in text or text[0] in text[1:-1]:  # noqa: PLR2004
        return ()
    said = Words(text[1:-1])
    try:
        name = said.name()
    except Doubt:
        return ()
    if not said.is_at_end:
        return ()
    if not catalog or name[: len(catalog)] == catalog:
        return name
    # A table without a namespace lies in the current one only if the catalog is the current one.
    return (*catalog, *name) if len(name) > 1 else ()
