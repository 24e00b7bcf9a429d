"""Names of consumers: they are part of the names of branches and change tables."""

from __future__ import annotations

import hashlib
import re

from dalsegno.errors import UserError

_LONGEST = 64
_NAME = re.compile(rf"[A-Za-z0-9_.\-]{{1,{_LONGEST}}}")


def checked_consumer(consumer: str) -> str:
    if not _NAME.fullmatch(consumer):
        raise UserError(
            f"{consumer!r} cannot be the name of a consumer: use 1 to 64 letters, digits, dots, dashes or underscores."
        )
    return consumer


def consumer_of_workflow(workflow_id: str) -> str:
    """The workflow itself; a name that is too long or odd is cut, and made unique by a digest."""
    plain = re.sub(r"[^A-Za-z0-9_.\-]", "_", workflow_id)
    if plain == workflow_id and len(plain) <= _LONGEST:
        return plain
    digest = hashlib.sha256(workflow_id.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST - 9]}.{digest}"
