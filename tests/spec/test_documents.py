"""YAML and JSON become values that know their places."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dalsegno.errors import InvalidWorkflow
from dalsegno.spec import documents
from dalsegno.spec.composing import DEPTH, NODES
from dalsegno.spec.nodes import MapNode, Node, SourceLocation, plain
from dalsegno.spec.problems import Problems


def read(text: str | bytes) -> Node:
    problems = Problems()
    root = documents.read(text, problems)
    problems.refuse("doc")
    assert root is not None
    return root


def refusal(text: str | bytes) -> str:
    with pytest.raises(InvalidWorkflow) as refused:
        read(text)
    return str(refused.value).removeprefix("doc:")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("No", "No"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("12:30:00", "12:30:00"),
        ("2026-01-02", "2026-01-02"),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("1.2.3", "1.2.3"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!float 12", 12.0),
        ("9" * 500, "9" * 500),
    ],
)
def test_words_follow_yaml_1_2(written: str, value: Any) -> None:
    found = plain(read(f"a: {written}"))["a"]
    assert (found, type(found)) == (value, type(value))


def test_places() -> None:
    root = read("a: 1\nb:\n  - c: x\n    d: [1, 2]\n")
    assert isinstance(root, MapNode)
    key, listed = root.entries["b"]
    assert key.mark == SourceLocation(2, 1)
    inner = listed.items[0]  # type: ignore[union-attr]
    assert inner.entries["d"][0].mark == SourceLocation(4, 5)  # type: ignore[union-attr]
    assert inner.entries["d"][1].items[1].mark == SourceLocation(4, 12)  # type: ignore[union-attr]


def test_places_in_json() -> None:
    root = read('{\n\t"a" : [1,\n {"b":"x"}]}')
    assert isinstance(root, MapNode)
    assert root.entries["a"][0].mark == SourceLocation(2, 2)
    inner = root.entries["a"][1].items[1]  # type: ignore[union-attr]
    assert inner.entries["b"][1].mark == SourceLocation(3, 7)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value",
    [
        {"a": "😀", "b": [1, 2.5, -3e20, True, False, None, {}], "c": [], "": {"x" * 2000: '\t"\\/'}},
        {"big": 2**70, "zero": 0, "text": "yes"},
        [],
        {},
        {"a": {"b": [[], [{}]]}},
    ],
)
def test_any_json(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent="\t"), json.dumps(value, ensure_ascii=False)):
        assert plain(read(text)) == value


def test_flow_style_is_yaml() -> None:
    assert plain(read("{a: 1, b: [x, 'y']}")) == {"a": 1, "b": ["x", "y"]}


def test_aliases_stand_for_what_they_name() -> None:
    assert plain(read("a: &x {k: [1]}\nb: *x\n")) == {"a": {"k": [1]}, "b": {"k": [1]}}


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert plain(read("\ufeffa: 1")) == {"a": 1}
    assert plain(read(b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", "3:1: the key 'a' is given twice; the first one is in line 1"),
        ('{"a": 1,\n "a": 2}', "2:2: the key 'a' is given twice; the first one is in line 1"),
        ("a:\n\tb: 1", "2:1: found character that cannot start any token; indent with spaces, not with tabs"),
        ("a: @x", "1:4: found character that cannot start any token; put the text in quotes"),
        ("a: b: c", "1:5: a ':' isn't expected here; put a text that holds ': ' in quotes"),
        ("a: \0", "1:4: the character U+0000 may not be in a document"),
        ("a: 1\nb: \x07", "2:4: the character U+0007 may not be in a document"),
        ("a: \ud800", "1:4: the character U+D800 may not be in a document"),
        (b"a: 1\nb: \xff", "2:4: this is not UTF-8; save the file as UTF-8"),
        ("", "1:1: the document is empty"),
        ("# nothing\n", "1:1: the document is empty"),
        ("a: 1\n---\nb: 2", "2:1: a second document begins here; write one workflow per file"),
        ("a: !!python/object:os.system x", "1:4: the tag !!python/object:os.system has no meaning here"),
        ("a: !!python/tuple [1]", "1:4: the tag !!python/tuple has no meaning here"),
        (
            "a: 1\n!b: 2\nc: 3",
            "3:1: could not find expected ':'; a key that begins with '!' needs quotes, such as '!name'",
        ),
        ("a: !!int x", "1:4: 'x' is not a valid int"),
        ("a: *x", "1:4: there is no anchor &x before this"),
        ("a: &x [*x]", "1:8: *x stands inside of what it repeats"),
        ("? [a]\n: b", "1:3: a key must be a text, found a list or a mapping"),
        ('{"a": [1\n 2]}', "2:2: expected ',' or ']', found '2'"),
        ('{"a": 1,}', "1:9: expected a key in double quotes, found '}'"),
        ('{"a": 1, b" : }', "1:10: expected a key in double quotes, found 'b'"),
        ('{"a": 1} x', "1:10: expected the end of the text, found 'x'"),
        ('{"a', "1:2: unterminated string"),
        ('{"a": "\\ud800"}', "1:7: this text holds half of a surrogate pair (\\ud800), which is not a character"),
    ],
)
def test_refusals(text: str | bytes, expected: str) -> None:
    assert refusal(text) == expected


def test_all_problems_at_once() -> None:
    assert refusal("a: 1\na: 2\nb: !x y\n").count("\n") == 1


def test_depth() -> None:
    deepest = "[" * DEPTH + "]" * DEPTH
    assert plain(read(deepest)) is not None
    assert refusal(f"[{deepest}]") == f"1:{DEPTH + 1}: this is nested more than {DEPTH} levels deep"
    assert "nested more than" in refusal("a:\n" + "".join(f"{'  ' * n}a:\n" for n in range(1, 100)))


def test_aliases_do_not_get_around_the_depth() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100))
    assert "nested more than" in refusal(text)


def test_aliases_count_in_full() -> None:
    text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
    )
    assert f"more than {NODES:,} values" in refusal(text)


def test_size() -> None:
    assert "larger than" in refusal("a: " + "x" * documents.BYTES)
    assert "larger than" in refusal(("a: " + "ä" * (documents.BYTES // 2)).encode())


@pytest.mark.parametrize("text", ["a: {b: ${c}}", "a: [$S3{c.sql}]"])
def test_a_reference_between_brackets_needs_quotes(text: str) -> None:
    assert refusal(text).endswith("; put ${…} in quotes where it stands between brackets")
