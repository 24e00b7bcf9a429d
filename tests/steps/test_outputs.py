"""What a job hands on, and what is not accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dalsegno import job
from dalsegno.errors import UserError
from dalsegno.steps.outputs import SIZE_LIMIT, read_outputs, signals_in

#: No text that can be stored holds NUL or half of a surrogate pair.
letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(letters)
values = st.recursive(
    texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(letters, max_size=5), inner, max_size=4),
    max_leaves=8,
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(names, values, max_size=4), max_size=4))
def test_whatever_is_set_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[dict[str, Any]]) -> None:
    file = tmp_path / "output"
    file.unlink(missing_ok=True)
    monkeypatch.setenv("DALSEGNO_OUTPUT", str(file))
    expected: dict[str, Any] = {}
    for each in given:
        job.output(each)
        expected |= each
    assert read_outputs(file) == expected


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "output"
    file.write_bytes(text.encode())
    return file


def test_lines(tmp_path: Path) -> None:
    text = 'a=1\n\nb= two words = one \n{"c": [1, 2.5, true], "a": 2}\nd=\r\n'
    assert read_outputs(written(tmp_path, text)) == {"a": 2, "b": " two words = one", "c": [1, 2.5, True], "d": ""}


def test_no_file_is_no_output(tmp_path: Path) -> None:
    assert read_outputs(tmp_path / "output") == {}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("just words", "neither name=value nor a JSON object"),
        ("[1]", "neither name=value"),
        ("1a=2", "neither name=value"),
        ('{"a": null}', "'a' cannot be set to None"),
        ('{"a": NaN}', "neither name=value"),
        ('{"a": 9223372036854775808}', "'a' holds a whole number of more than 64 bits"),
        ('{"a": ["\\ud800"]}', "'a' holds half of a surrogate pair"),
        ('{"a": {"\\u0000": 1}}', "'a' holds a NUL character"),
        ("a=b\0c", "'a' holds a NUL character"),
        ('{"a": ' + "[" * 500 + "]" * 500 + "}", "'a' holds more than 64 lists and maps"),
        ('{"a b": 1}', "'a b' cannot be set"),
        ('{"a": ' + "[" * 100_000, "neither name=value"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        read_outputs(written(tmp_path, f"good=1\n{line}\n"))
    assert "Line 2" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_too_much(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="more than 1,048,576 bytes"):
        read_outputs(written(tmp_path, f"a={'x' * SIZE_LIMIT}"))


def test_a_secret_is_not_handed_on(tmp_path: Path) -> None:
    secret = 'hun"ter2'
    with pytest.raises(UserError, match="password holds the value of a secret"):
        read_outputs(written(tmp_path, json.dumps({"fine": "x", "password": [f"a {secret} b"]})), [secret])


def test_outside_of_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("DALSEGNO_OUTPUT", "DALSEGNO_PARAMS", "DALSEGNO_KEY", "DALSEGNO_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    job.output(a=1)
    assert capsys.readouterr().out == '{"a": 1}\n'
    assert (job.params(), job.param("x", 5), job.key(), job.attempt()) == ({}, 5, None, 1)
    with pytest.raises(KeyError, match="no parameter 'x'; it has none"):
        job.param("x")


def test_signals_are_told_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALSEGNO_OUTPUT", str(tmp_path / "output"))
    job.announce("plays/complete", day=20261116, country="DE")
    job.output(rows=1)
    job.announce("done")
    found = read_outputs(tmp_path / "output")
    assert found.pop("rows") == 1
    assert [signals_in(each) for each in found.values()] == [
        [{"name": "plays/complete", "day": 20261116, "country": "DE"}, {"name": "done"}]
    ]
