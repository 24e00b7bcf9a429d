"""What is to be proven and adopted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dalsegno.spark.statements import tokens_of

#: How many snapshots are replayed where nobody says.
SNAPSHOTS = 14


@dataclass(frozen=True)
class ProofRequest:
    """A SELECT, and the table that it declares."""

    query: str
    target: str
    #: How many of the last snapshots of all sources together are replayed.
    snapshots: int = SNAPSHOTS
    #: Other fields of the ``incremental`` block, such as ``keys``.
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """The same for the same SELECT and options, whatever its white space and comments."""
        words = "\0".join(token.text for token in tokens_of(self.query))
        said = json.dumps([words, {name: self.options[name] for name in sorted(self.options)}])
        return hashlib.sha256(said.encode()).hexdigest()[:32]
