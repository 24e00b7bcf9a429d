"""Secrets stay secret: they are cut out of everything that is shown, logged or stored."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from dalsegno.model.params import Param

MASK = "******"
#: Shorter lines of a long secret, and texts made of one, are too common in other texts to be cut out of them.
_TELLING = 4


class Mask:
    """Cuts secrets out of texts, also as they look when quoted for JSON, a URL or a shell, or as Base64."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def everywhere(self, value: Any) -> Any:
        """The same in every text of plain data."""
        match value:
            case str():
                return self(value)
            case list() | tuple():
                return [self.everywhere(item) for item in value]
            case Mapping():
                return {self(str(key)): self.everywhere(item) for key, item in value.items()}
        return value


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets."""
    return Mask(secrets)(text)


def texts_of(param: Param) -> Iterator[str]:
    """What of a secret parameter must not be seen in other texts."""
    return (text for text in _leaves(param.value) if len(text) >= _TELLING)


def _leaves(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _leaves(item)
        case Mapping():
            for item in value.values():
                yield from _leaves(item)


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield shlex.quote(secret).strip("'") or secret
    yield quote(secret, safe="", errors="replace")
    yield quote_plus(secret, errors="replace")
    yield base64.b64encode(secret.encode("utf-8", "replace")).decode("ascii")
    yield from (line for line in secret.splitlines() if len(line) >= _TELLING)
