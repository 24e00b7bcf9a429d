"""Names of consumers: they are part of the names of branches and change tables."""

from __future__ import annotations

import re

from dalsegno.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


def checked_consumer(consumer: str) -> str:
    if not _NAME.fullmatch(consumer):
        raise UserError(
            f"{consumer!r} is no name for a consumer: expected 1 to 64 letters, digits, dots, dashes or underscores."
        )
    return consumer
