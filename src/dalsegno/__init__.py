"""dalsegno: incremental processing on Apache Iceberg.

    from dalsegno import Lake

    with Lake.open() as lake, lake.capture("db.playback", consumer="daily") as changes:
        if changes:
            spark.sql(f"INSERT INTO lake.db.playback_daily SELECT * FROM {changes.table}")

``plan`` shows what a capture would do, ``capture`` hands over a change table, and the end of the ``with`` block moves
the consumer's checkpoint. The same verbs are on the command line: ``dalsegno --help``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalsegno.capture.changes import Changes
    from dalsegno.capture.lake import Lake
    from dalsegno.errors import DalsegnoError, DataError, PlatformError, UserError
    from dalsegno.operations.incremental_functions import incremental
    from dalsegno.settings import Settings

__version__ = "0.1.0"
__all__ = [
    "Changes",
    "DalsegnoError",
    "DataError",
    "Lake",
    "PlatformError",
    "Settings",
    "UserError",
    "__version__",
    "incremental",
]

_HOMES = {
    "Changes": "dalsegno.capture.changes",
    "DalsegnoError": "dalsegno.errors",
    "DataError": "dalsegno.errors",
    "Lake": "dalsegno.capture.lake",
    "PlatformError": "dalsegno.errors",
    "Settings": "dalsegno.settings",
    "UserError": "dalsegno.errors",
    "incremental": "dalsegno.operations.incremental_functions",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that ``dalsegno --help`` need not wait for PyIceberg."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dalsegno' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
