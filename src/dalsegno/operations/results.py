"""What verbs return that is made further down, in one place for whoever shows it.

For type annotations: importing it loads everything.
"""

from __future__ import annotations

from dalsegno.audit.comparison import Comparison, Difference
from dalsegno.audit.results import Audit, AuditRequest, Culprit, TargetResult
from dalsegno.capture.changes import Changes
from dalsegno.capture.checking import CatalogReport
from dalsegno.capture.planning import TablePlan
from dalsegno.capture.rebuilding import Action, Rebuilt, RebuiltCheckpoint
from dalsegno.capture.settling import Committed
from dalsegno.plan.forecast import Cost, Expiry
from dalsegno.store import CheckpointPosition

__all__ = [
    "Action",
    "Audit",
    "AuditRequest",
    "CatalogReport",
    "Changes",
    "CheckpointPosition",
    "Committed",
    "Comparison",
    "Cost",
    "Culprit",
    "Difference",
    "Expiry",
    "Rebuilt",
    "RebuiltCheckpoint",
    "TablePlan",
    "TargetResult",
]
