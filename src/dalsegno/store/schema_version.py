"""Which schema this dalsegno works with; ``migrations`` leads every database there."""

from __future__ import annotations

#: The newest step under ``migrations/versions``.
HEAD = "0010"
#: The oldest step whose dalsegno works with a database at ``HEAD``.
OLDEST = "0010"
