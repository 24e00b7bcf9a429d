"""The driver that SQL travels in."""

from __future__ import annotations

import ast
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.spark.submit import sql_driver

STATEMENTS = st.lists(
    st.fixed_dictionaries({"sql": st.text(), "conf": st.dictionaries(st.text(), st.text()), "is_done": st.booleans()})
)


@settings(deadline=None, max_examples=30)
@given(STATEMENTS)
def test_the_driver_has_the_statements_as_they_are(statements: list[dict[str, Any]]) -> None:
    """Whatever quotes, line ends or letters they have."""
    source = sql_driver(statements)
    source.encode("ascii")
    *_, call = ast.parse(source).body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert ast.unparse(call.value.func) == "main"
    [loaded] = call.value.args
    assert isinstance(loaded, ast.Call)
    assert json.loads(ast.literal_eval(loaded.args[0])) == statements
