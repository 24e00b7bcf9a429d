"""What targets should hold: an independent SELECT for each, which audits compare them with."""

from __future__ import annotations

from dalsegno.spec.fields import Fields, is_null
from dalsegno.spec.nodes import Scalar

_EXAMPLE = "write for instance lake.shop.totals: SELECT day, sum(amount) AS amount FROM lake.shop.orders GROUP BY day"


def read_oracle(fields: Fields) -> dict[str, str]:
    """Queries by the name of their table."""
    given = fields.mapping("oracle")
    if given is None:
        return {}
    found: dict[str, str] = {}
    for table, (_, node) in given.node.entries.items():
        query = given.text(table)
        if query and query.strip() and table.strip():
            found[table] = query
        elif isinstance(node, Scalar) or is_null(node):
            given.add(f"the oracle of {table!r} must be a table's name and a SELECT", table, _EXAMPLE)
    return found
