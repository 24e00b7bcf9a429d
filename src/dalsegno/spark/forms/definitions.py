"""Statements that make, change or drop tables, views, functions and namespaces."""

from __future__ import annotations

from sqlglot import exp

from dalsegno.spark.forms.form import Doubt, Effect, Form, Name
from dalsegno.spark.forms.trees import name_of, tree_of
from dalsegno.spark.forms.words import Words, for_parser

_NAMESPACES = frozenset({"NAMESPACE", "DATABASE", "SCHEMA"})
_KINDS = _NAMESPACES | {"TABLE", "VIEW", "FUNCTION"}
#: How changes of a table begin that may be made twice.
_REPEATABLE = (
    ("SET", "TBLPROPERTIES"),
    ("UNSET", "TBLPROPERTIES", "IF", "EXISTS"),
    ("SET", "LOCATION"),
    ("SET", "IDENTIFIER", "FIELDS"),
    ("WRITE",),
    ("ALTER", "COLUMN"),
    ("DROP", "COLUMN", "IF", "EXISTS"),
    ("DROP", "COLUMNS", "IF", "EXISTS"),
    *((*how, kind) for kind in ("BRANCH", "TAG") for how in (("CREATE", "OR", "REPLACE"), ("REPLACE",))),
    *((how, kind, *condition) for kind in ("BRANCH", "TAG") for how, condition in (
        ("CREATE", ("IF", "NOT", "EXISTS")), ("DROP", ("IF", "EXISTS")))),
)  # fmt: skip


def of_create(words: Words) -> Form:
    words.take("CREATE")
    replaces = words.take("OR", "REPLACE")
    is_global = words.take("GLOBAL")
    is_temporary = bool(words.take_any(("TEMPORARY", "TEMP")))
    is_external = words.take("EXTERNAL")
    kind = _kind(words)
    if (is_temporary and kind not in ("VIEW", "FUNCTION")) or (is_external and kind != "TABLE"):
        raise Doubt("the parser does not know its grammar")
    if kind == "TABLE":
        return _of_table(words, "CREATE OR REPLACE TABLE" if replaces else "CREATE TABLE")
    is_guarded = words.take("IF", "NOT", "EXISTS") or replaces
    name = words.name()
    if is_temporary:
        # A global one may be there already, made by another session.
        is_replayable = is_guarded or not is_global
        said = f"CREATE {'GLOBAL ' * is_global}TEMPORARY {kind}"
        return Form(Effect.SESSION, said, name, is_idempotent=is_guarded, is_replayable=is_replayable)
    return _definition(f"CREATE {kind}", name, is_idempotent=is_guarded)


def of_replace(words: Words) -> Form:
    if not words.take("REPLACE", "TABLE"):
        raise Doubt("the parser does not know its grammar")
    return _of_table(words, "REPLACE TABLE")


def _of_table(words: Words, said: str) -> Form:
    is_guarded = words.take("IF", "NOT", "EXISTS")
    name = words.name()
    replaces = "REPLACE" in said
    if words.may_have_query() and _has_query(words, name):
        return Form(Effect.STAMPED, f"{said} … AS SELECT", name, is_idempotent=is_guarded, creates=True, is_ddl=True)
    return _definition(said, name, is_idempotent=is_guarded or replaces, creates=True)


def _has_query(words: Words, name: Name) -> bool:
    text = for_parser(words.tokens)
    # sqlglot does not know REPLACE TABLE.
    tree = tree_of(f"CREATE OR {text}" if words.tokens[0].word == "REPLACE" else text)
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE" or name_of(tree.this) != name:
        raise Doubt("it is not clear which table it makes")
    query = tree.expression
    if query is not None and not isinstance(query, exp.Query | exp.Values | exp.Table):
        raise Doubt("the parser does not know its grammar")
    return query is not None


def of_drop(words: Words) -> Form:
    words.take("DROP")
    is_temporary = bool(words.take_any(("TEMPORARY", "TEMP")))
    if words.peek() == "VARIABLE":
        return Form(Effect.SESSION, "DROP VARIABLE", is_idempotent=words.has("IF", "EXISTS"), is_replayable=True)
    kind = _kind(words)
    is_guarded = words.take("IF", "EXISTS")
    name = words.name()
    if is_temporary:
        return Form(Effect.SESSION, f"DROP TEMPORARY {kind}", name, is_idempotent=is_guarded, is_replayable=True)
    return _definition(f"DROP {kind}", name, is_idempotent=is_guarded, drops=True)


def of_alter(words: Words) -> Form:
    words.take("ALTER")
    kind = _kind(words)
    name = words.name()
    is_renamed = words.has("RENAME", "TO")
    changes = _REPEATABLE if kind == "TABLE" else (("SET",), ("UNSET", "TBLPROPERTIES", "IF", "EXISTS"), ("AS",))
    is_idempotent = any(words.take(*change) for change in changes) and not is_renamed
    return _definition(f"ALTER {kind}", name, is_idempotent=is_idempotent, drops=is_renamed)


def of_maintenance(words: Words) -> Form:
    """What changes what is known of a table, and none of its rows."""
    if words.take("COMMENT", "ON") and (kind := words.take_any(_KINDS)):
        return _definition(f"COMMENT ON {kind}", words.name(), is_idempotent=True)
    if words.take("ANALYZE", "TABLE"):
        return _definition("ANALYZE TABLE", words.name(), is_idempotent=True)
    if words.take("MSCK", "REPAIR", "TABLE") or words.take("MSCK", "TABLE") or words.take("REPAIR", "TABLE"):
        return _definition("MSCK REPAIR TABLE", words.name(), is_idempotent=True)
    raise Doubt("the parser does not know its grammar")


def of_load(words: Words) -> Form:
    """``LOAD DATA [LOCAL] INPATH '…' [OVERWRITE] INTO TABLE t``: it takes the files away from where they were."""
    words.take("LOAD", "DATA")
    words.take("LOCAL")
    if not words.take("INPATH"):
        raise Doubt("the parser does not know its grammar")
    words.at += 1
    words.take("OVERWRITE")
    if not words.take("INTO", "TABLE"):
        raise Doubt("the parser does not know its grammar")
    return _definition("LOAD DATA", words.name())


def _kind(words: Words) -> str:
    if kind := words.take_any(_KINDS):
        return kind
    raise Doubt("the parser does not know its grammar")


def _definition(
    said: str, name: Name, *, is_idempotent: bool = False, creates: bool = False, drops: bool = False
) -> Form:
    return Form(Effect.UNSTAMPED, said, name, is_idempotent=is_idempotent, creates=creates, drops=drops, is_ddl=True)
