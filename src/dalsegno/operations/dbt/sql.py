"""Compiled SQL of dbt → SQL that Spark runs, with the names that tables have here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from dalsegno.errors import UserError
from dalsegno.model.tables import TableName
from dalsegno.operations.dbt.manifest import Relation
from dalsegno.rewrite.tables import quoted
from dalsegno.spark.statements import Token, tokens_of

#: Their SQL is Spark's already, and stays as it is.
_SPARK = frozenset({"spark", "databricks", "glue", "fabricspark"})
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Names = Mapping[Relation, TableName]


def spark_sql(sql: str, adapter: str, names: Names) -> str:
    """A ``UserError`` says why it cannot be done."""
    if adapter in _SPARK:
        return _renamed(sql, names).strip()
    if Dialect.get(adapter) is None:
        raise UserError(f"its SQL is that of {adapter}, which cannot be translated")
    try:
        tree = parse_one(sql, read=adapter)
    except (SqlglotError, RecursionError) as error:
        raise UserError(f"its SQL cannot be parsed as {adapter}'s") from error
    known = {_key(relation.database, relation.schema, relation.name): name for relation, name in names.items()}
    for table in tree.find_all(exp.Table):
        if (name := known.get(_key(table.catalog, table.db, table.name))) is not None:
            table.set("catalog", _identifier(name.catalog))
            table.set("db", _identifier(".".join(name.namespace)))
            table.set("this", _identifier(name.name))
    short = {("", schema, name) for _, schema, name in known} | set(known)
    for column in tree.find_all(exp.Column):
        # Qualified by the table's own name, which stays as it is; anything else may be a field of a struct.
        if _key(column.catalog, column.db, column.table) in short:
            column.set("catalog", None)
            column.set("db", None)
    return tree.sql(dialect="spark", pretty=True)


def written_name(name: TableName) -> str:
    """As a person would write it."""
    parts = (name.catalog, *name.identifier)
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts)


def _renamed(sql: str, names: Names) -> str:
    """With other names for tables; comments and strings stay as they are."""
    by_words = {tuple(token.text for token in tokens_of(relation.text)): name for relation, name in names.items()}
    tokens, pieces, at, index = list(tokens_of(sql)), [], 0, 0
    while index < len(tokens):
        found = next(
            (words for words in sorted(by_words, key=len, reverse=True) if _stands(words, tokens, index)), None
        )
        if found is None:
            index += 1
            continue
        last = tokens[index + len(found) - 1]
        pieces += [sql[at : tokens[index].start], written_name(by_words[found])]
        at, index = last.start + len(last.text), index + len(found)
    return "".join([*pieces, sql[at:]])


def _stands(words: tuple[str, ...], tokens: Sequence[Token], index: int) -> bool:
    """Whether a name stands at a place, and not as a part of a longer one."""
    after = index + len(words)
    beside = [tokens[at].text for at in (index - 1, after) if 0 <= at < len(tokens)]
    return "." not in beside and tuple(token.text for token in tokens[index:after]) == words


def _key(database: str | None, schema: str, name: str) -> tuple[str, str, str]:
    return (database or "").lower(), schema.lower(), name.lower()


def _identifier(text: str) -> exp.Identifier:
    return exp.to_identifier(text, quoted=not _PLAIN.fullmatch(text))
