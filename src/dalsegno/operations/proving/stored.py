"""Proofs in the store."""

from __future__ import annotations

from dalsegno.model.proofs import Proof
from dalsegno.operations.json_values import plain
from dalsegno.store import Store, proofs


def remember(store: Store, proof: Proof) -> None:
    """Store a proof, whatever it showed: only the last one of a SELECT counts."""
    with store.database.writing() as connection:
        proofs.add(
            connection,
            proof.target,
            proof.query_digest,
            is_proven=proof.is_proven,
            by=proof.by,
            now=proof.at,
            details=plain(proof),
        )
