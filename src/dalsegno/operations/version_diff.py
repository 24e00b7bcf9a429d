"""What differs between two versions of a workflow: the definition, and the files that are part of them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from dalsegno.store import run_queries, step_files

#: Lines end with a line feed alone: what else Python takes for one may stand in the middle of a line.
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class VersionDiff:
    workflow_id: str
    first: int
    second: int
    #: In the unified format; empty if they are the same.
    diff: str


def diff_of(connection: Connection, workflow_id: str, first: int, second: int) -> VersionDiff:
    before, after = (_texts(connection, workflow_id, version) for version in (first, second))
    # The definition first, then the files by name.
    names = sorted(before.keys() | after.keys(), key=lambda name: (name is not None, name))
    parts = [_unified(before.get(name, ""), after.get(name, ""), name or "definition", first, second) for name in names]
    return VersionDiff(workflow_id, first, second, "".join(parts))


def _texts(connection: Connection, workflow_id: str, version: int) -> Mapping[str | None, str]:
    """The definition under None, and each stored file under its name."""
    row = run_queries.version_row(connection, workflow_id, version)
    definition: Mapping[str, Any] = row["definition"] if row else {}
    found: dict[str | None, str] = {None: json.dumps(definition, indent=2, ensure_ascii=False) + "\n"}
    for each in run_queries.files_of_version(connection, workflow_id, version):
        if each.digest is not None:
            found[each.name] = step_files.content(connection, each.digest) or ""
    return found


def _unified(before: str, after: str, name: str, first: int, second: int) -> str:
    lines = difflib.unified_diff(
        _LINE.findall(before), _LINE.findall(after), f"version {first}/{name}", f"version {second}/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
