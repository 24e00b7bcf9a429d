"""Requests to places that the settings or the environment name: what is sent is for that place alone."""

from __future__ import annotations

import urllib.request
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def send(request: urllib.request.Request, *, timeout: float) -> None:
    """A redirect is an answer like any other failure, and raised as ``HTTPError``: headers hold secrets."""
    with urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout):
        pass
