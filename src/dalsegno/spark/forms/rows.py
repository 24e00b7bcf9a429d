"""Statements about rows: queries, INSERT, MERGE, UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dalsegno.spark.forms import deletes
from dalsegno.spark.forms.form import Doubt, Effect, Form, Name, unknown
from dalsegno.spark.forms.trees import name_of, tree_of
from dalsegno.spark.forms.words import Words, for_parser
from dalsegno.spark.statements import Token

#: What a query begins with in Spark's grammar, and nothing else does.
QUERIES = frozenset({"SELECT", "VALUES", "TABLE", "("})


def of_rows(words: Words) -> Form:
    """What begins with WITH, FROM, a query or a change of rows."""
    words.skip_queries_with_names()
    first = words.peek()
    if first in QUERIES:
        return Form(Effect.READ, "SELECT" if first == "(" else first, is_idempotent=True)
    if first == "FROM":
        # Every INSERT says so: without the word, it is a query.
        return _of_from(words) if words.has("INSERT") else Form(Effect.READ, "SELECT", is_idempotent=True)
    if first in _CHANGES:
        return _CHANGES[first](words)
    raise Doubt("the parser does not know its grammar")


def _of_insert(words: Words) -> Form:
    words.take("INSERT")
    how = words.take_any(("INTO", "OVERWRITE"))
    if not how:
        raise Doubt("the parser does not know its grammar")
    name = f"INSERT {how}"
    written = _written(words)
    if words.peek() == "PARTITION":
        words.at += 1
        words.skip_parentheses()
    begin = words.at
    words.take("IF", "NOT", "EXISTS")
    tree = tree_of(for_parser([*words.tokens[:begin], *_without_further_rows(words)]))
    if not isinstance(tree, exp.Insert) or name_of(tree.this) != written:
        raise Doubt("it is not clear which table it writes to")
    if words.peek() == "REPLACE":
        name = "INSERT INTO … REPLACE WHERE"
    overwrites = name == "INSERT OVERWRITE"
    return Form(Effect.STAMPED, name, written, overwrites=overwrites, fixed_columns=_fixed_columns(tree))


def _without_further_rows(words: Words) -> Sequence[Token]:
    """What comes next, with the first row of VALUES only: a million of them would take the parser minutes."""
    begin = words.at
    if words.take("VALUES") and words.peek() == "(":
        words.skip_parentheses()
        end = words.at
        while words.peek() == "," and words.peek(1) == "(":
            words.at += 1
            words.skip_parentheses()
        if words.is_at_end:
            words.at = begin
            return words.tokens[begin:end]
    words.at = begin
    return words.tokens[begin:]


def _written(words: Words) -> Name:
    """The table that stands behind INSERT INTO or INSERT OVERWRITE."""
    if words.peek() == "TABLE" and words.peek(1) != ".":
        words.at += 1
    if words.peek() in ("DIRECTORY", "LOCAL") and words.peek(1) != ".":
        raise Doubt("it writes to a directory")
    written = words.name()
    if words.peek() == "WITH" and words.peek(1) == "(":
        raise Doubt("it sets options of the write, which may lead it to a branch")
    return written


def _fixed_columns(insert: exp.Insert) -> int:
    table = insert.this.this if isinstance(insert.this, exp.Schema) else insert.this
    partition = table.args.get("partition") or insert.args.get("partition")
    columns = partition.expressions if partition else []
    return len(columns) if all(isinstance(column, exp.EQ) for column in columns) else 0


def _of_from(words: Words) -> Form:
    """``FROM x INSERT INTO a SELECT … INSERT INTO b SELECT …``."""
    tree = tree_of(for_parser(words.tokens))
    if isinstance(tree, exp.Query):
        raise Doubt("it is not clear whether it writes")
    inserts = tree.expressions if isinstance(tree, exp.MultitableInserts) else []
    targets = tuple(name_of(insert.this) for insert in inserts)
    said: list[Name] = []
    name = "FROM … INSERT INTO"
    while not words.is_at_end:
        if words.peek() == "(":
            words.skip_parentheses()
        elif words.take("INSERT", "INTO"):
            said.append(_written(words))
        elif words.take("INSERT", "OVERWRITE"):
            name = "FROM … INSERT OVERWRITE"
            said.append(_written(words))
        else:
            words.at += 1
    if not targets or tuple(said) != targets:
        raise Doubt("it is not clear which tables it writes to")
    if len(targets) > 1:
        return unknown(name, "it writes to several tables", targets=targets)
    overwrites = "OVERWRITE" in name
    return Form(Effect.STAMPED, name, targets[0], overwrites=overwrites, fixed_columns=_fixed_columns(inserts[0]))


def _of_merge(words: Words) -> Form:
    words.take("MERGE")
    begin = words.at
    # sqlglot does not know these words.
    evolves = words.take("WITH", "SCHEMA", "EVOLUTION")
    known = [*words.tokens[:begin], *words.tokens[words.at :]]
    if not words.take("INTO"):
        raise Doubt("the parser does not know its grammar")
    return Form(Effect.STAMPED, "MERGE", _checked(words, exp.Merge, known)[0], is_ddl=evolves)


def _of_update(words: Words) -> Form:
    words.take("UPDATE")
    return Form(Effect.STAMPED, "UPDATE", _checked(words, exp.Update, words.tokens)[0])


def _of_delete(words: Words) -> Form:
    if not words.take("DELETE", "FROM"):
        raise Doubt("the parser does not know its grammar")
    target, tree = _checked(words, exp.Delete, words.tokens)
    where = tree.args.get("where")
    condition = where.this if where else exp.true()
    if deletes.is_by_rows(condition, tree.this.alias_or_name):
        return Form(Effect.STAMPED, "DELETE", target)
    return Form(Effect.UNSTAMPED, "DELETE", target, is_idempotent=deletes.is_idempotent(condition))


def _checked(words: Words, kind: type[exp.Expr], known: Sequence[Token]) -> tuple[Name, exp.Expr]:
    """The table that a statement names here, if the parser understands the same."""
    said = words.name()
    tree = tree_of(for_parser(known))
    if not isinstance(tree, kind) or name_of(tree.this) != said:
        raise Doubt("it is not clear which table it writes to")
    return said, tree


def of_truncate(words: Words) -> Form:
    if not words.take("TRUNCATE", "TABLE"):
        raise Doubt("the parser does not know its grammar")
    return Form(Effect.UNSTAMPED, "TRUNCATE TABLE", words.name(), is_idempotent=True)


_CHANGES = {"INSERT": _of_insert, "MERGE": _of_merge, "UPDATE": _of_update, "DELETE": _of_delete}
