"""The workflows of models in the store, and how files become such workflows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dalsegno.errors import Conflict, InvalidWorkflow
from dalsegno.operations.context import Context
from dalsegno.operations.models.model_files import PARAM, InvalidModels, ModelFile, origin_of
from dalsegno.operations.pushed import Pushed
from dalsegno.operations.pushing import push
from dalsegno.store import run_queries


@dataclass(frozen=True)
class StoredModel:
    """The newest version of a workflow; one that is not of a model has no file."""

    workflow_id: str
    version: int
    is_active: bool = True
    file: str | None = None
    digest: str | None = None
    query: str | None = None


def stored_models(context: Context) -> dict[str, StoredModel]:
    """All workflows, by id."""
    with context.store.database.reading() as connection:
        rows = run_queries.workflow_rows(connection)
        found = [(row, run_queries.version_row(connection, row["id"], row["latest_version"])) for row in rows]
    return {row["id"]: _stored(row, version) for row, version in found}


def _stored(row: Mapping[str, Any], version: Mapping[str, Any] | None) -> StoredModel:
    workflow = version["definition"].get("workflow", {}) if version else {}
    known = StoredModel(row["id"], row["latest_version"], row["active_version"] == row["latest_version"])
    origin = workflow.get("params", {}).get(PARAM, {}).get("value")
    if not isinstance(origin, dict) or set(origin) != {"file", "digest"}:
        return known
    query = workflow["steps"][0]["step"]["params"]["incremental"]["value"]["query"]["value"]
    return replace(known, file=origin["file"].replace("$$", "$"), digest=origin["digest"], query=query)


def push_changed(context: Context, models: Sequence[ModelFile], stored: dict[str, StoredModel]) -> list[Pushed]:
    """New versions of the files that have changed; all problems of all files at once."""
    for model in models:
        _refuse_taken(context, model, stored.get(model.workflow_id))
    pushed, errors = [], []
    for model in models:
        known = stored.get(model.workflow_id)
        if known is not None and _is_same(known, model, context):
            pushed.append(Pushed(model.workflow_id, known.version, is_new=False, is_active=known.is_active))
            continue
        try:
            pushed.append(push_model(context, model))
        except InvalidWorkflow as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else InvalidModels(errors)
    return pushed


def _is_same(known: StoredModel, model: ModelFile, context: Context) -> bool:
    is_pushed = (known.digest, known.file) == (model.digest, origin_of(Path(model.file), context.settings))
    return is_pushed and not model.may_have_star(known.query)


def push_model(context: Context, model: ModelFile) -> Pushed:
    with context.changing("workflows.push"):
        try:
            return push(context, model.text, file=model.file, folder=Path(model.file).resolve().parent)
        except InvalidWorkflow as error:
            raise model.located(error) from error


def without_file(
    context: Context, folder: Path, stored: dict[str, StoredModel], models: Sequence[ModelFile]
) -> list[str]:
    """The workflows of models of this folder whose files are not there any more."""
    inside, known = f"{origin_of(folder, context.settings)}/".removeprefix("./"), {each.workflow_id for each in models}
    return sorted(
        each.workflow_id
        for each in stored.values()
        if each.file is not None and each.file.startswith(inside) and each.workflow_id not in known
    )


def _refuse_taken(context: Context, model: ModelFile, known: StoredModel | None) -> None:
    """Raise if the id is another workflow's. A model that was moved is still the same."""
    if known is None or known.file == origin_of(Path(model.file), context.settings):
        return
    if known.file is None or (context.settings.root / known.file).is_file():
        other = f"that of {known.file}" if known.file else "not that of a model"
        raise Conflict(
            f"{model.file}: the workflow {model.workflow_id} is in the store already, and is {other}.",
            hint="Give the model another id: -- workflow: ID",
        )
