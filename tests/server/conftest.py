"""A server in this process, and somebody who asks it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dalsegno.clock import utc_now
from dalsegno.operations.service import Role, Service
from dalsegno.operations.tokens import first_token
from dalsegno.server.listening import listening
from tests.engine.support import Place


class Client:
    """Asks one server, with a token or without."""

    def __init__(self, place: Place, service: Service, address: str) -> None:
        self.place, self.service, self.address = place, service, address
        self.token: str | None = first_token(place.operations.store, by="ada", now=utc_now())

    def raw(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Any]:
        if self.token is not None:
            headers = {"Authorization": f"Bearer {self.token}", **headers}
        request = urllib.request.Request(f"http://{self.address}{path}", body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        code, text, _ = self.raw(method, path, None if body is None else json.dumps(body).encode())
        return code, json.loads(text)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    place = Place.at(tmp_path)
    service = Service(place.operations.settings, place.operations.store, [Role.API])
    with listening(service, "127.0.0.1:0") as address:
        yield Client(place, service, address)
    place.operations.close()
