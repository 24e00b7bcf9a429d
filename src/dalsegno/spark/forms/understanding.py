"""From the text of a statement to its form."""

from __future__ import annotations

import re
from collections.abc import Callable

from dalsegno.spark.forms import definitions, procedures, rows, session
from dalsegno.spark.forms.form import Doubt, Effect, Form, unknown
from dalsegno.spark.forms.words import Words, is_closed, is_string

#: What Spark replaces by a setting's value before it parses.
_SUBSTITUTED = re.compile(r"\$\{\S+?\}")
#: Functions that call any method of Java.
_REFLECTION = frozenset({"reflect", "try_reflect", "java_method"})
#: Words that say more about what a statement does, behind its first.
_SECOND = frozenset({"INTO", "OVERWRITE", "TABLE", "TABLES", "VIEW", "FUNCTION", "DATA", "IMMEDIATE", "FROM"})
#: What follows them is taken as it is.
_RAW = frozenset({"SET", "RESET", "ADD", "LIST", "REFRESH"})
_EXPLAINED = frozenset({"LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"})


def form_of(statement: str) -> Form:
    """What a statement will do, by its text; in any doubt, UNKNOWN."""
    words = Words(statement)
    try:
        _refuse_what_hides(words)
        return _form_of(words)
    except Doubt as doubt:
        return unknown(_beginning(words), str(doubt))
    except RecursionError:
        return unknown(_beginning(words), "it is nested too deeply")


def _refuse_what_hides(words: Words) -> None:
    """Refuse what may do something else than the words say."""
    if words.is_at_end:
        raise Doubt("there is none")
    if words.peek() not in _RAW and not is_closed(words.tokens[-1]):
        raise Doubt("a quote is not closed")
    if _SUBSTITUTED.search(words.text):
        raise Doubt("Spark puts the value of a setting into it")
    if words.peek() == "BEGIN" or (words.peek(1) == ":" and words.peek(2) == "BEGIN"):
        raise Doubt("it is a script of statements")
    if words.has(";"):
        raise Doubt("it is more than one statement")
    for token, after in zip(words.tokens, words.tokens[1:], strict=False):
        if after.word == "(" and token.text.strip("`").lower() in _REFLECTION:
            raise Doubt(f"{token.text}(…) may call anything")
        if token.word == "USING" and is_string(after):
            raise Doubt("it hands its rows to a script")


def _form_of(words: Words) -> Form:
    first = words.peek()
    if first in ("SHOW", "DESCRIBE", "DESC", "LIST"):
        return Form(Effect.READ, first, is_idempotent=True)
    if first == "EXPLAIN":
        words.at += 1
        words.take_any(_EXPLAINED)
        if words.peek() in ("EXECUTE", "BEGIN", ""):
            raise Doubt("the parser does not know its grammar")
        return Form(Effect.READ, "EXPLAIN", is_idempotent=True)
    if first == "EXECUTE":
        raise Doubt("its SQL is known only when it is executed")
    return _BY_FIRST_WORD.get(first, rows.of_rows)(words)


def _beginning(words: Words) -> str:
    """The words that a statement begins with, as people say them."""
    words.at = 0
    if words.peek() == "BEGIN" or (words.peek(1) == ":" and words.peek(2) == "BEGIN"):
        return "BEGIN … END"
    said = [words.tokens[0].text.upper() if words.tokens else ""]
    if words.peek(1) in _SECOND:
        said.append(words.peek(1))
    return " ".join(said)


_BY_FIRST_WORD: dict[str, Callable[[Words], Form]] = {
    "ADD": session.of_add,
    "ALTER": definitions.of_alter,
    "ANALYZE": definitions.of_maintenance,
    "CACHE": session.of_cache,
    "CALL": procedures.of_call,
    "CLEAR": session.of_cleaning,
    "COMMENT": definitions.of_maintenance,
    "CREATE": definitions.of_create,
    "DECLARE": session.of_declare,
    "DROP": definitions.of_drop,
    "LOAD": definitions.of_load,
    "MSCK": definitions.of_maintenance,
    "REFRESH": session.of_cleaning,
    "REPAIR": definitions.of_maintenance,
    "REPLACE": definitions.of_replace,
    "RESET": session.of_reset,
    "SET": session.of_set,
    "TRUNCATE": rows.of_truncate,
    "UNCACHE": session.of_cleaning,
    "USE": session.of_use,
}
