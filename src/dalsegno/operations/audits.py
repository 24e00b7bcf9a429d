"""The verb that audits a workflow's targets."""

from __future__ import annotations

from collections.abc import Callable

from dalsegno.audit.auditing import audit
from dalsegno.audit.results import Audit, AuditRequest
from dalsegno.operations.context import Context


class Audits:
    def __init__(self, context: Context) -> None:
        self._context = context

    def run(
        self, request: AuditRequest, *, version: str = "default", say: Callable[[str], None] = lambda _: None
    ) -> Audit:
        """Compute anew what a workflow should have written, and compare it with what it has written."""
        self._context.require("audits.run")
        machinery = self._context.machinery
        blueprint = machinery.versions.named(request.workflow_id, version)
        return audit(self._context.lake, machinery.scopes, blueprint, request, say)
