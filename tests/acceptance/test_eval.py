"""dalsegno eval, as a user or another program types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import Commands


def test_one_expression(run: Commands) -> None:
    assert run("eval", "1 + x", "--param", "x=1").out == "LONG: 2\n"
    assert run("eval", "'a' + x", "--param", "x:STRING=1").out == "STRING: a1\n"
    assert run("eval", "x", "--param", "x=1.5").out == "DOUBLE: 1.5\n"
    assert run("eval", "!x", "--param", "x=true").out == "BOOLEAN: false\n"
    assert run("eval", "x[1]", "--param", "x:LONG_ARRAY=[1,2]").out == "LONG: 2\n"
    assert run("eval", "m.get('a')", "--param", 'm:MAP={"a":{"type":"LONG","value":3}}').out == "LONG: 3\n"
    assert run("eval", "new DateTime()", "--now", "2026-01-31T12:00").out == "DATETIME: 2026-01-31T12:00:00.000Z\n"
    assert run.json("eval", "new String[]{'a', 'é'}") == {"type": "STRING_ARRAY", "value": ["a", "é"]}


def test_mistakes(run: Commands) -> None:
    wrong = run("eval", "1 + 'a'.lenght()")
    assert (wrong.code, wrong.err) == (
        2,
        "SelError: line 1, column 9: STRING has no method lenght.\n  → Did you mean length?\n",
    )
    as_json = run("eval", "1 +", "--json")
    assert (as_json.code, as_json.json()["error"]["code"]) == (2, "SelError")
    for arguments in (
        ("eval",),
        ("eval", "1", "--batch", "-"),
        ("eval", "1", "--param", "x"),
        ("eval", "1", "--param", "x:FOO=1"),
        ("eval", "1", "--param", "x:LONG_ARRAY=[1"),
        ("eval", "1", "--now", "tomorrow"),
    ):
        refused = run(*arguments)
        assert refused.code == 2 and "UserError: " in refused.err, arguments
    assert run("eval", "--batch", "missing.jsonl").code == 4


LINES: list[tuple[str, Any]] = [
    ('{"expression": "x + 1", "params": {"x": {"type": "LONG", "value": 1}}}', {"type": "LONG", "value": 2}),
    ('{"expression": "x", "params": {"x": {"type": "DOUBLE", "value": 1}}}', {"type": "DOUBLE", "value": 1.0}),
    ('{"expression": "x", "params": {"x": {"value": ["a"]}}}', {"type": "STRING_ARRAY", "value": ["a"]}),
    (
        '{"expression": "m.get(\'k\') + 1", "params": '
        '{"m": {"type": "MAP", "value": {"k": {"type": "LONG", "value": 2}}}}}',
        {"type": "LONG", "value": 3},
    ),
    (
        '{"expression": "m.get(\'k\')", "params": {"m": {"type": "string_map", "value": {"k": "v"}}}}',
        {"type": "STRING", "value": "v"},
    ),
    ('{"expression": "nothing"}', {"type": "NULL", "value": None}),
    ('{"expression": "1.0 / 0"}', {"type": "DOUBLE", "value": "Infinity"}),
    ("{", "not JSON"),
    ("", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("[1]", 'no "expression"'),
    ('{"expression": 5}', 'no "expression"'),
    ('{"expression": "1", "params": []}', None),
    ('{"expression": "1", "params": [1]}', '"params" is not an object'),
    ('{"expression": "x", "params": {"x": 1}}', "not a parameter"),
    ('{"expression": "x", "params": {"x": {"type": "FOO", "value": 1}}}', "no parameter type"),
    ('{"expression": "x", "params": {"x": {"type": "LONG", "value": "a"}}}', "is not a LONG"),
    ('{"expression": "x", "params": {"x": {"type": "LONG_ARRAY", "value": 5}}}', "is not a LONG_ARRAY"),
    ('{"expression": "x", "params": {"x": {"type": "LONG_ARRAY", "value": [1, "a"]}}}', "is not a LONG"),
    ('{"expression": "x", "params": {"x": {"type": "MAP", "value": 5}}}', "is not a MAP"),
    ('{"expression": "x", "params": {"x": {"value": null}}}', "not a value"),
    ('{"expression": "while (true) {}"}', "25,000 turns"),
    ('{"expression": "Long.parseLong(\'\\ud83d\')"}', "not a whole number"),
    ('{"expression": "throw \'no\';"}', "throws: no"),
    ('{"expression": "1 + 1"}', {"type": "LONG", "value": 2}),
]


def test_a_batch_answers_every_line(run: Commands) -> None:
    Path("lines.jsonl").write_text("\n".join(line for line, _ in LINES), encoding="utf-8")
    done = run("eval", "--batch", "lines.jsonl")
    given = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0 and len(given) == len(LINES)
    for (line, expected), answer in zip(LINES, given, strict=True):
        if isinstance(expected, str):
            assert list(answer) == ["error"] and expected in answer["error"], line[:80]
        elif expected is not None:
            assert answer == expected, line


def test_a_batch_from_standard_input_needs_nothing_slow() -> None:
    code = (
        "import sys; sys.argv = ['dalsegno', 'eval', '--batch', '-']\n"
        "from dalsegno.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('SLOW', sorted({m.split('.')[0] for m in sys.modules} "
        "& {'pyiceberg', 'pyarrow', 'sqlalchemy', 'alembic', 'pyspark', 'fastavro', 'rich'}))"
    )
    asked = b'\xff\xfe\n{"expression": "x * 2", "params": {"x": {"type": "LONG", "value": 21}}}\n'
    done = subprocess.run([sys.executable, "-c", code], input=asked, capture_output=True, check=True)
    first, second, slow = done.stdout.decode().splitlines()
    assert "not JSON" in json.loads(first)["error"]
    assert json.loads(second) == {"type": "LONG", "value": 42}
    assert slow == "SLOW []"


def test_ten_thousand_lines(run: Commands) -> None:
    lines = [
        json.dumps({"expression": "x * 2 + 1", "params": {"x": {"type": "LONG", "value": n}}}) for n in range(10_000)
    ]
    Path("many.jsonl").write_text("\n".join(lines), encoding="utf-8")
    answers = [json.loads(line)["value"] for line in run("eval", "--batch", "many.jsonl").out.splitlines()]
    assert answers == [2 * n + 1 for n in range(10_000)]
