"""The compiled models of a dbt project → ``models/*.sql``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from dalsegno.capture.lake_reader import table_name
from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.model.tables import TableName
from dalsegno.operations.dbt.manifest import Manifest, Node, Relation
from dalsegno.operations.dbt.sql import Names, spark_sql, written_name
from dalsegno.operations.models.model_files import SUFFIX
from dalsegno.settings import Settings

#: A view becomes a table that is kept up to date: what reads it sees the same rows.
_MATERIALIZED = frozenset({"table", "incremental", "view"})
_REASONS = {
    "seed": "load it once, for instance with a Spark step",
    "snapshot": "it keeps history, which a SELECT does not declare",
    "ephemeral": "dbt has put it into the models that read it",
    "python": "it is not SQL",
}
_COLUMN = re.compile(r"\w+")
_GRANULARITY = {"hour": "hours", "day": "days", "month": "months", "year": "years"}


@dataclass(frozen=True)
class ImportedModel:
    #: Its unique id in dbt.
    name: str
    file: str
    target: TableName
    #: False: the file was the same already.
    is_written: bool


@dataclass(frozen=True)
class LeftOut:
    """Something that was not imported, and why."""

    name: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Imported:
    folder: str
    models: tuple[ImportedModel, ...]
    left_out: tuple[LeftOut, ...]
    #: What to look at.
    notes: tuple[str, ...]


def import_manifest(
    file: Path, folder: Path, settings: Settings, *, catalog: str | None = None, is_forced: bool = False
) -> Imported:
    """Write a model for each model of dbt that a SELECT can declare; files that differ are refused, all of them."""
    manifest = Manifest.read(file)
    if catalog is not None:
        settings.catalog(catalog)
    names = {each: _name(each, settings, catalog) for each in manifest.relations}
    texts: dict[Path, tuple[Node, str]] = {}
    left_out, notes = [*_tests(manifest)], list[str]()
    for node in manifest.nodes:
        if node.kind == "test":
            continue
        reason = _reason(node)
        if reason is None:
            try:
                text = _model(node, manifest.adapter, names, settings)
            except UserError as error:
                reason = error.message
            else:
                texts[_file(folder, node)] = node, text
                notes += _notes(node)
        if reason is not None:
            left_out.append(LeftOut(node.unique_id, _kind(node), reason))
    _refuse_collisions(texts, names)
    if not is_forced:
        _refuse_changed(file, texts)
    written = []
    for path, (node, text) in sorted(texts.items()):
        is_new = not path.exists() or path.read_text(encoding="utf-8") != text
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        written.append(ImportedModel(node.unique_id, str(path), names[_own(node)], is_new))
    return Imported(str(folder), tuple(written), tuple(left_out), tuple(notes))


def _name(relation: Relation, settings: Settings, catalog: str | None) -> TableName:
    """The database is a catalog if there is one of this name; otherwise all is in one catalog."""
    if catalog is None:
        is_known = relation.database in settings.catalogs
        catalog = relation.database if is_known and relation.database else settings.default_catalog
    return TableName(catalog, tuple(relation.schema.split(".")), relation.name)


def _own(node: Node) -> Relation:
    if node.relation is None:
        raise UserError("it has no table")
    return node.relation


def _file(folder: Path, node: Node) -> Path:
    path = PurePosixPath(node.path)
    if path.is_absolute() or ".." in path.parts:
        raise UserError(f"{node.unique_id} has the path {node.path!r}, which leads out of the folder.")
    return folder / path.with_suffix(SUFFIX)


def _kind(node: Node) -> str:
    if node.kind != "model":
        return node.kind
    return "python model" if node.language == "python" else f"{node.config.get('materialized')} model"


def _reason(node: Node) -> str | None:
    """Why it cannot be imported, as far as that is known without its SQL."""
    materialized = node.config.get("materialized")
    if node.kind != "model":
        return _REASONS.get(node.kind, "it is not a model")
    if node.language == "python" or materialized == "ephemeral":
        return _REASONS["python" if node.language == "python" else "ephemeral"]
    if materialized not in _MATERIALIZED:
        return f"it is materialized as {materialized!r}"
    return None if node.sql else "it is not compiled: dbt compile --full-refresh"


def _tests(manifest: Manifest) -> Iterator[LeftOut]:
    kinds = Counter(node.kind for node in manifest.nodes)
    if kinds["test"]:
        reason = "an audit compares each table with its SELECT"
        yield LeftOut(f"{kinds['test']} test{'s' * (kinds['test'] > 1)}", "test", reason)


def _model(node: Node, adapter: str, names: Names, settings: Settings) -> str:
    from dalsegno.rewrite.analysis import tables_in  # noqa: PLC0415 - slow import

    target = names[_own(node)]
    sql = spark_sql(node.sql or "", adapter, names)
    if "{{" in sql or "{%" in sql:
        raise UserError("its SQL still has templates: dbt compile --full-refresh")
    if target in {table_name(settings, ".".join(name)) for name in tables_in(sql)}:
        raise UserError("it reads its own table, as is_incremental() makes it: dbt compile --full-refresh")
    return "\n".join([*_header(node, target), sql, ""])


def _header(node: Node, target: TableName) -> Iterator[str]:
    yield f"-- Imported from {node.unique_id} of dbt."
    yield f"-- target: {written_name(target)}"
    if partitions := _partitions(node.config.get("partition_by")):
        yield f"-- partitioned by: {', '.join(partitions)}"
    if (keys := _keys(node)) is not None:
        yield f"-- keys: {', '.join(keys)}"
    if node.tags:
        yield f"-- tags: {', '.join(node.tags)}"
    if description := " ".join(node.description.split()):
        yield f"-- description: {description}"


def _partitions(given: Any) -> list[str]:
    """Of Spark a column or several; of BigQuery a mapping."""
    if isinstance(given, dict):
        column, granularity = given.get("field"), str(given.get("granularity", "day")).lower()
        if not isinstance(column, str) or "range" in given:
            return []
        is_day = str(given.get("data_type", "date")).lower() == "date" and granularity == "day"
        return [column] if is_day else [f"{_GRANULARITY[granularity]}({column})"] * (granularity in _GRANULARITY)
    return [given] if isinstance(given, str) else [each for each in given or () if isinstance(each, str)]


def _keys(node: Node) -> list[str] | None:
    """Columns only: an expression is not a key here."""
    given = node.config.get("unique_key")
    keys = [given] if isinstance(given, str) else given
    return keys if keys and all(isinstance(each, str) and _COLUMN.fullmatch(each) for each in keys) else None


def _notes(node: Node) -> Iterator[str]:
    for hook in ("pre-hook", "post-hook"):
        if node.config.get(hook):
            yield f"{node.unique_id} has a {hook}, which is not imported."
    if node.config.get("unique_key") and _keys(node) is None:
        yield f"{node.unique_id} has a unique_key that is not a list of columns; it is left out."
    if node.config.get("partition_by") and not _partitions(node.config["partition_by"]):
        yield f"{node.unique_id} has a partition_by that Iceberg does not have; it is left out."


def _refuse_collisions(texts: dict[Path, tuple[Node, str]], names: Names) -> None:
    owners: dict[TableName, Node] = {}
    for node, _ in texts.values():
        other = owners.setdefault(names[_own(node)], node)
        if other is not node:
            raise UserError(
                f"{other.unique_id} and {node.unique_id} would both be {names[_own(node)]}.",
                hint="Add a catalog for each database to the settings.",
            )


def _refuse_changed(file: Path, texts: dict[Path, tuple[Node, str]]) -> None:
    changed = [path for path, (_, text) in texts.items() if path.exists() and path.read_text(encoding="utf-8") != text]
    if changed:
        listed = ", ".join(map(str, sorted(changed)[:5])) + (", …" if len(changed) > 5 else "")  # noqa: PLR2004
        raise UserError(
            f"{len(changed)} files are there already, and differ: {listed}. Nothing was written.",
            hint="Choose another folder.",
            actions=[action("Or overwrite them", Verb.IMPORT_DBT, manifest=str(file), force=True)],
        )
