"""Secrets are neither shown nor stored."""

from __future__ import annotations

import base64
import json
import shlex
from urllib.parse import quote, quote_plus

from dalsegno.model.params import Param, ParamMode, ParamSource, ParamType
from dalsegno.spec.params.secrets import MASK, Mask, mask
from dalsegno.spec.params.stored import from_stored, param_from_json, param_to_json, to_stored

SECRET = 'pa\'ss "w\\rd"/ü?&'


def test_every_form_is_masked() -> None:
    forms = (
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        shlex.quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
    )
    text = mask(" | ".join(forms), [SECRET])
    assert text == " | ".join(
        [MASK, f'"{MASK}"', f'"{MASK}"', f"'{MASK}'", MASK, MASK, MASK],
    )


def test_lines_of_a_key_are_masked() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADAN\n+\n-----END KEY-----\n"
    assert mask("read MIIEvQIBADAN and 1 + 1", [key]) == f"read {MASK} and 1 + 1"


def test_longer_secrets_go_first() -> None:
    assert mask("abcdef abc", ["abc", "abcdef"]) == f"{MASK} {MASK}"


def test_nothing_to_mask() -> None:
    assert mask("text", []) == mask("text", [""]) == "text"


def test_plain_data_is_masked() -> None:
    assert Mask(["abc"]).everywhere({"abc": ["xabc", 1, None]}) == {MASK: [f"x{MASK}", 1, None]}


PARAMS = {
    "plain": Param(ParamType.DOUBLE, 1.0, ParamMode.CONSTANT, ParamSource.LAUNCH),
    "hidden": Param(ParamType.STRING, "hunter2", is_secret=True),
    "nested": Param(ParamType.MAP, {"a": {"b": [1, 2]}}),
}


def test_what_is_stored() -> None:
    stored = json.loads(json.dumps(to_stored(PARAMS)))
    assert "hunter2" not in json.dumps(stored)
    assert stored["hidden"] == {
        "type": "STRING",
        "value": MASK,
        "mode": "MUTABLE",
        "source": "DEFINITION",
        "is_secret": True,
    }
    assert from_stored(stored) == {"plain": PARAMS["plain"], "nested": PARAMS["nested"]}


def test_numbers_keep_their_type() -> None:
    written = json.loads(json.dumps(param_to_json(PARAMS["plain"])).replace("1.0", "1"))
    found = param_from_json(written)
    assert found is not None
    assert isinstance(found.value, float)
