"""A proxy before moto's Glue: it compares versions, as Glue does and moto does not, and loses answers on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lakes.object_stores import ObjectStore
from tests.lakes.vending import Answer, Request, forward, serving

_UPDATE, _GET = "AWSGlue.UpdateTable", "AWSGlue.GetTable"


@dataclass
class GlueProxy:
    store: ObjectStore
    endpoint: str = ""
    #: The actions of which the next is done, and answered with a broken connection.
    losing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer | None:
        target = request.header("x-amz-target")
        # Comparing and changing is one step: nobody else changes a table in between.
        with self._guard:
            answer = self._conflict(request) if target == _UPDATE else None
            answer = answer or forward(self.store.endpoint, request)
            action = target.partition(".")[2]
            if action in self.losing and answer[0] == 200:
                self.losing.remove(action)
                self.lost.append(action)
                return None
        return answer

    def _conflict(self, request: Request) -> Answer | None:
        asked = json.loads(request.body)
        if "VersionId" not in asked:
            return None
        table = {"DatabaseName": asked["DatabaseName"], "Name": asked["TableInput"]["Name"]}
        headers = {name: value for name, value in request.headers.items() if name.lower() != "x-amz-target"}
        look = replace(request, headers={**headers, "X-Amz-Target": _GET}, body=json.dumps(table).encode())
        found: dict[str, Any] = json.loads(forward(self.store.endpoint, look)[2])
        if found.get("Table", {}).get("VersionId") == asked["VersionId"]:
            return None
        said = {
            "__type": "ConcurrentModificationException",
            "Message": "Update table failed due to concurrent changes.",
        }
        return 400, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(said).encode()


@contextmanager
def running_glue_proxy(store: ObjectStore) -> Iterator[GlueProxy]:
    proxy = GlueProxy(store)
    with serving(proxy.answer) as proxy.endpoint:
        yield proxy
