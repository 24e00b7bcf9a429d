"""A statement under other names: what it would write and read is put elsewhere, and what it does stays the same.

Names are found by tokens, so strings and comments are left as they are. A statement whose form is in doubt is
*unclear*, and whoever wants to be safe does not execute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from dalsegno.spark.statements import Token, tokens_of

#: The parts of a name, catalog first, or fewer if the session's catalog and namespace are meant.
Name = tuple[str, ...]


class Effect(Enum):
    """What a statement does to tables."""

    #: None but to the session.
    NONE = auto()
    #: It writes to one table, whose name it says.
    WRITES = auto()
    #: It changes how rows are stored, and none of them.
    MAINTAINS = auto()
    UNCLEAR = auto()


#: What changes no row of a table.
_MAINTENANCE = frozenset(
    f"CALL {procedure}"
    for procedure in (
        "rewrite_data_files",
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "expire_snapshots",
        "remove_orphan_files",
        "compute_table_stats",
        "compute_partition_stats",
    )
)
#: Statements about one table whose name is found where it stands; a renamed table is a second one.
_OF_A_TABLE = (
    *("INSERT", "MERGE", "UPDATE", "DELETE", "TRUNCATE TABLE", "ALTER TABLE", "DROP TABLE"),
    *("CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE"),
)
#: After these, a single word is the name of a table.
_BEFORE_TABLES = frozenset({"FROM", "JOIN", "INTO", "TABLE", "UPDATE", "USING", "OVERWRITE", "EXISTS"})


@dataclass(frozen=True)
class Understood:
    """A statement's effect, and the table that it writes to."""

    effect: Effect
    table: Name | None = None
    #: Whether names that leave out catalog or namespace mean something else from now on.
    moves: bool = False


def understood(statement: str) -> Understood:
    from dalsegno.spark.forms import Effect as Form  # noqa: PLC0415 - a grammar takes a while to load
    from dalsegno.spark.forms import form_of  # noqa: PLC0415

    form = form_of(statement)
    if form.name in _MAINTENANCE:
        return Understood(Effect.MAINTAINS)
    if form.effect in (Form.READ, Form.SESSION) and not form.name.startswith(("CALL", "CREATE GLOBAL")):
        return Understood(Effect.NONE, moves=form.moves_names)
    is_of_a_table = form.name.startswith(_OF_A_TABLE) and not (form.drops and form.name == "ALTER TABLE")
    if form.effect in (Form.STAMPED, Form.UNSTAMPED) and is_of_a_table:
        return Understood(Effect.WRITES, form.target)
    return Understood(Effect.UNCLEAR, moves=form.moves_names)


@dataclass(frozen=True)
class Stand:
    """What stands for a table: a name as SQL, and the version of the table that is all it has."""

    name: str
    version: int | None = None


def renamed(statement: str, names: Mapping[Name, Stand]) -> str:
    """The statement with other names; what follows a name, such as a column or a metadata table, stays behind it.

    ``VERSION AS OF`` the one version that it has is left out: what stands for it counts its own.
    """
    found = list(tokens_of(statement))
    pieces, position = [], 0
    for path in _paths(statement):
        shortest = 1 if path.is_table else 2
        for length in range(len(path.parts), shortest - 1, -1):
            if (stand := names.get(path.parts[:length])) is not None:
                pieces += [statement[position : path.start], stand.name]
                behind = [token for token in found if token.start >= path.ends[-1]][:5]
                is_whole = length == len(path.parts)
                position = (is_whole and _behind_version(behind, stand.version)) or path.ends[length - 1]
                break
    return "".join([*pieces, statement[position:]])


def _behind_version(behind: Sequence[Token], version: int | None) -> int | None:
    """Where ``[FOR] VERSION AS OF version`` ends."""
    words = [token.word for token in behind]
    at = 1 if words[:1] == ["FOR"] else 0
    if words[at : at + 3] not in (["VERSION", "AS", "OF"], ["SYSTEM_VERSION", "AS", "OF"]) or len(words) <= at + 3:
        return None
    said = behind[at + 3]
    return _end(said) if said.text.strip("'\"") == str(version) else None


def named_in(statement: str, catalogs: Iterable[str]) -> set[Name]:
    """The tables of these catalogs that a statement names in full, where tables are named."""
    known = set(catalogs)
    return {
        path.parts
        for path in _paths(statement)
        if path.is_table and len(path.parts) > 2 and path.parts[0] in known  # noqa: PLR2004
    }


def quoted(*parts: str) -> str:
    """A name as SQL that means these very parts."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(value: str) -> str:
    """A text as SQL that means this very text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def equal_columns(statement: str) -> tuple[str, ...]:
    """The columns by which a MERGE finds its rows: those that its condition compares with one of the same name."""
    found = list(tokens_of(statement))
    if not any(token.word == "MERGE" for token in found):
        return ()
    depth, begin, end = 0, None, len(statement)
    for token in found:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth == 0 and token.word == "ON" and begin is None:
            begin = _end(token)
        elif depth == 0 and token.word == "WHEN" and begin is not None:
            end = token.start
            break
    condition = statement[begin:end] if begin is not None else ""
    compared = [
        left.parts[-1]
        for left, right in pairwise(_paths(condition))
        if condition[left.ends[-1] : right.start].strip() in ("=", "==", "<=>")
        and left.parts[-1].lower() == right.parts[-1].lower()
    ]
    return tuple(dict.fromkeys(compared))


@dataclass(frozen=True)
class _Path:
    """Words with dots between them."""

    parts: Name
    start: int
    #: Where each part ends.
    ends: tuple[int, ...]
    #: Whether it stands where a table is named.
    is_table: bool


def _paths(statement: str) -> Iterator[_Path]:
    found = list(tokens_of(statement))
    at = 0
    while at < len(found):
        if not _is_name(found[at]) or (at > 0 and found[at - 1].word == "."):
            at += 1
            continue
        first, parts, ends = at, [_unquoted(found[at])], [_end(found[at])]
        while at + 2 < len(found) and found[at + 1].word == "." and _is_name(found[at + 2]):
            at += 2
            parts.append(_unquoted(found[at]))
            ends.append(_end(found[at]))
        is_table = first > 0 and found[first - 1].word in _BEFORE_TABLES
        yield _Path(tuple(parts), found[first].start, tuple(ends), is_table)
        at += 1


def _is_name(token: Token) -> bool:
    return token.word.isidentifier() or token.text.startswith("`")


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.text.startswith("`") else token.text


def _end(token: Token) -> int:
    return token.start + len(token.text)
