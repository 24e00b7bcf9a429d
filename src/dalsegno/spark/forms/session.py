"""Statements that change the session's own state only."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dalsegno.spark.forms.form import Doubt, Effect, Form
from dalsegno.spark.forms.trees import is_constant, tree_of
from dalsegno.spark.forms.words import Words, for_parser
from dalsegno.spark.statements import Token

#: Settings that decide which table a name means.
_NAMING = ("SPARK.SQL.DEFAULTCATALOG", "SPARK.SQL.CATALOG.")
_RESOURCES = frozenset({"JAR", "JARS", "FILE", "FILES", "ARCHIVE", "ARCHIVES"})


def of_set(words: Words) -> Form:
    words.take("SET")
    if words.peek() in ("VAR", "VARIABLE") and words.peek(1) != "=":
        words.at += 1
        return _of_variables(words)
    if words.peek() == "CATALOG" and words.peek(1) != "=":
        is_named = words.peek(2) != "("
        return Form(Effect.SESSION, "SET CATALOG", is_idempotent=is_named, is_replayable=is_named, moves_names=True)
    if words.take("TIME", "ZONE"):
        return _session("SET TIME ZONE")
    if words.peek() == "ROLE":
        raise Doubt("the parser does not know its grammar")
    said = [token.text for token in words.tokens[words.at :]]
    if "=" not in said:
        return Form(Effect.READ, "SET", is_idempotent=True)
    key = "".join(said[: said.index("=")]).replace("`", "")
    return _session("SET", moves_names=key.upper().startswith(_NAMING), setting=key)


def of_reset(words: Words) -> Form:
    words.take("RESET")
    key = "".join(token.text.upper() for token in words.tokens[words.at :])
    return _session("RESET", moves_names=not key or key.strip("`").startswith(_NAMING))


def of_use(words: Words) -> Form:
    words.take("USE")
    if words.peek() in ("NAMESPACE", "DATABASE", "SCHEMA") and words.peek(1) != ".":
        words.at += 1
    try:
        words.name()
    except Doubt:
        return Form(Effect.SESSION, "USE", moves_names=True)
    return _session("USE", moves_names=True)


def of_declare(words: Words) -> Form:
    words.take("DECLARE")
    replaces = words.take("OR", "REPLACE")
    words.take_any(("VARIABLE", "VAR"))
    names = [words.name()[-1]]
    while words.take(","):
        names.append(words.name()[-1])
    if words.peek() == "CURSOR":
        raise Doubt("the parser does not know its grammar")
    while not words.is_at_end and words.peek() not in ("DEFAULT", "="):
        words.at += 1
    given = words.tokens[words.at + 1 :]
    is_fixed = not given or _is_constant(given)
    variables = () if is_fixed else tuple(names)
    return Form(
        Effect.SESSION, "DECLARE", is_idempotent=replaces and is_fixed, is_replayable=is_fixed, variables=variables
    )


def _of_variables(words: Words) -> Form:
    """``SET VAR a = …, b = …`` or ``SET VAR (a, b) = (SELECT …)``."""
    varying: list[str] = []
    while True:
        is_tuple = words.take("(")
        names = [words.name()[-1]]
        while is_tuple and words.take(","):
            names.append(words.name()[-1])
        if (is_tuple and not words.take(")")) or not words.take("="):
            raise Doubt("the parser does not know its grammar")
        begin = words.at
        while not words.is_at_end and words.peek() != ",":
            if words.peek() == "(":
                words.skip_parentheses()
            else:
                words.at += 1
        if not _is_constant(words.tokens[begin : words.at]):
            varying += names
        if not words.take(","):
            break
    is_fixed = not varying
    return Form(
        Effect.SESSION, "SET VARIABLE", is_idempotent=is_fixed, is_replayable=is_fixed, variables=tuple(varying)
    )


def _is_constant(tokens: Sequence[Token]) -> bool:
    """Whether the value of an expression is the same in every session; False if it cannot be told."""
    if [token.word for token in tokens] == ["DEFAULT"]:
        return False
    try:
        tree = tree_of(f"SELECT {for_parser(tokens).strip()}")
    except Doubt:
        return False
    return isinstance(tree, exp.Select) and len(tree.expressions) == 1 and is_constant(tree.expressions[0])


def of_cache(words: Words) -> Form:
    """What is cached is what the tables hold now: a later session caches something else."""
    words.take("CACHE")
    words.take("LAZY")
    if not words.take("TABLE"):
        raise Doubt("the parser does not know its grammar")
    name = words.name()
    return Form(Effect.SESSION, "CACHE TABLE", name, is_idempotent=not words.may_have_query())


def of_add(words: Words) -> Form:
    words.take("ADD")
    if kind := words.take_any(_RESOURCES):
        return _session(f"ADD {kind}")
    raise Doubt("the parser does not know its grammar")


def of_cleaning(words: Words) -> Form:
    if words.take("CLEAR", "CACHE"):
        return _session("CLEAR CACHE")
    if words.take("UNCACHE", "TABLE"):
        return _session("UNCACHE TABLE")
    if words.take("REFRESH"):
        return _session("REFRESH")
    raise Doubt("the parser does not know its grammar")


def _session(name: str, *, moves_names: bool = False, setting: str = "") -> Form:
    return Form(Effect.SESSION, name, is_idempotent=True, is_replayable=True, moves_names=moves_names, setting=setting)
