"""``target/manifest.json`` of dbt: the nodes that are models, and the relations that their SQL names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalsegno.errors import UserError

_COMPILE = "Run it in the project: dbt compile --full-refresh"


@dataclass(frozen=True)
class Relation:
    """A table as dbt names it, and the text that stands for it in compiled SQL."""

    database: str | None
    schema: str
    name: str
    text: str


@dataclass(frozen=True)
class Node:
    """A model, seed, snapshot or test."""

    unique_id: str
    name: str
    kind: str
    #: From the folder of models; of a package, below its name.
    path: str
    sql: str | None
    relation: Relation | None
    config: Mapping[str, Any]
    language: str
    description: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    #: Such as ``spark`` or ``duckdb``.
    adapter: str
    nodes: tuple[Node, ...]
    #: Of everything: sources, seeds and snapshots are read, too.
    relations: tuple[Relation, ...]

    @classmethod
    def read(cls, file: Path) -> Manifest:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{file} cannot be read: {error.strerror}.", hint=_COMPILE) from error
        except ValueError as error:
            raise UserError(f"{file} is not JSON: {error}.", hint=_COMPILE) from error
        if not isinstance(data, dict) or "nodes" not in data or "dbt_schema_version" not in data.get("metadata", {}):
            raise UserError(f"{file} is not a manifest of dbt.", hint="Give target/manifest.json of a dbt project.")
        metadata = data["metadata"]
        nodes = tuple(_node(each, metadata.get("project_name")) for each in data["nodes"].values())
        if not any(node.sql for node in nodes if node.kind == "model"):
            raise UserError(f"{file} has no compiled SQL.", hint=_COMPILE)
        return cls(metadata.get("adapter_type") or "spark", nodes, tuple(dict.fromkeys(_relations(data))))


def _node(raw: Mapping[str, Any], project: str | None) -> Node:
    package = raw.get("package_name")
    path = str(raw.get("path") or raw["name"])
    return Node(
        unique_id=raw["unique_id"],
        name=raw["name"],
        kind=raw["resource_type"],
        path=path if project is None or package == project else f"{package}/{path}",
        sql=raw.get("compiled_code"),
        relation=_relation(raw),
        config=raw.get("config") or {},
        language=raw.get("language") or "sql",
        description=raw.get("description") or "",
        tags=tuple(raw.get("tags") or ()),
    )


def _relations(data: Mapping[str, Any]) -> Iterator[Relation]:
    for raw in (*data["nodes"].values(), *data.get("sources", {}).values()):
        if (found := _relation(raw)) is not None:
            yield found


def _relation(raw: Mapping[str, Any]) -> Relation | None:
    text = raw.get("relation_name")
    if not text or not raw.get("schema"):
        return None
    return Relation(raw.get("database"), raw["schema"], raw.get("alias") or raw.get("identifier") or raw["name"], text)
