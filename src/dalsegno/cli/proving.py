"""What ``rewrite`` does with --prove and --adopt."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from dalsegno.cli import proof_text
from dalsegno.cli.output import to_json
from dalsegno.operations.proving.request import SNAPSHOTS, ProofRequest

if TYPE_CHECKING:
    from dalsegno.operations.facade import Operations

#: How the command ends if the target was not what the SELECT gives, as for ``audit``.
NOT_PROVEN = 5


def prove_and_adopt(
    operations: Operations,
    query: str,
    target: str,
    options: Mapping[str, Any],
    prove: int | None,
    workflow: str | None,
    *,
    is_adopted: bool,
    as_json: bool,
) -> None:
    """``prove``: None adopts what was proven before."""
    request = ProofRequest(query, target, SNAPSHOTS if prove is None else prove, options)
    proof = None
    if prove is not None:
        proof = operations.tables.prove(request, say=lambda line: print(line, file=sys.stderr, flush=True))
        if not as_json:
            print(proof_text.proof(proof))
    # Sources without rows prove nothing, and contradict nothing.
    has_failed = proof is not None and not proof.is_proven and bool(proof.seen or proof.made_up or proof.difference)
    adopted = operations.workflows.adopt(request, workflow_id=workflow) if is_adopted and not has_failed else None
    if as_json:
        print(to_json({"proof": proof, "adopted": adopted} if is_adopted else proof))
    elif adopted is not None:
        print(proof_text.adopted(adopted))
    if has_failed:
        raise typer.Exit(NOT_PROVEN)
