"""``models/*.sql``: each file is one SELECT, and a workflow that keeps its table up to date."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dalsegno.capture.lake_reader import table_name
from dalsegno.errors import InvalidWorkflow, Problem, UserError
from dalsegno.hints import Verb, action, as_sentence
from dalsegno.model.tables import TableName
from dalsegno.operations.models.header import Header, read_header
from dalsegno.settings import Settings
from dalsegno.spec import workflows as spec
from dalsegno.spec.documents import BYTES
from dalsegno.spec.names import fault_of_workflow_id
from dalsegno.spec.nodes import SourceLocation
from dalsegno.spec.problems import Problems

SUFFIX = ".sql"
#: The step of every model's workflow, and the parameter that says which file the workflow is made of.
STEP, PARAM = "refresh", "model"
#: What stands for a parameter in a text of a workflow. In a model, a dollar sign is a dollar sign.
_REFERENCE = re.compile(r"\$(?=[$A-Za-z])")
_TEMPLATE = re.compile(r"\{\{|\{%|\$\{")


@dataclass(frozen=True)
class ModelFile:
    """One file, read and checked."""

    #: As people name it: from the folder in which the command runs.
    file: str
    #: The file's name without its ending, and the same with the folders below the folder of models.
    name: str
    path: str
    workflow_id: str
    target: TableName
    #: The tables that its SELECT reads, each once.
    sources: tuple[TableName, ...]
    sql: str
    header: Header
    #: What is pushed: a workflow as JSON.
    text: str
    #: Changes with anything that makes another workflow.
    digest: str

    def may_have_star(self, query: str | None) -> bool:
        """Whether ``SELECT *`` may stand in the query of a version: a table was not there when it was pushed."""
        return "*" in self.sql and query == _escaped(self.sql)

    def located(self, error: InvalidWorkflow) -> InvalidWorkflow:
        """The problems of the workflow, where they stand in the file."""
        return InvalidWorkflow([_placed(each, self.header) for each in error.problems], file=self.file)


class InvalidModels(InvalidWorkflow):
    """The problems of several files."""

    def __init__(self, errors: Sequence[InvalidWorkflow]) -> None:
        super().__init__([problem for error in errors for problem in error.problems])
        self.args = (self.message,)
        self.message = "\n".join(error.message for error in errors)
        self.errors = tuple(errors)

    @property
    def code(self) -> str:
        return InvalidWorkflow.__name__


def files_in(folder: Path) -> list[Path]:
    """By name; files and folders that are hidden are left out."""
    found = sorted(
        file
        for file in folder.rglob(f"*{SUFFIX}")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if not found:
        raise UserError(
            f"There is no model in {folder}: no file ends with {SUFFIX}.",
            hint="Write a SELECT into a file there.",
            actions=[action("Or make an example", Verb.CREATE_PROJECT)],
        )
    return found


def read_models(folder: Path, settings: Settings) -> list[ModelFile]:
    """All models of a folder, or all problems of all files."""
    models, errors = [], []
    for file in files_in(folder):
        try:
            models.append(read_model(file, folder, settings))
        except InvalidWorkflow as error:
            errors.append(error)
    errors += _refusals(models)
    if errors:
        raise errors[0] if len(errors) == 1 else InvalidModels(errors)
    return models


def read_model(file: Path, folder: Path, settings: Settings) -> ModelFile:
    problems = Problems()
    text = _text(file, problems)
    header = read_header(text, problems)
    if found := _TEMPLATE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        place = SourceLocation(line, found.start() - text.rfind("\n", 0, found.start()))
        if found[0] == "${":
            problems.add("a model has no parameters", place, hint="write the value, or a workflow in YAML")
        else:
            hint = as_sentence(action("take what dbt compiles", Verb.IMPORT_DBT, manifest="target/manifest.json"))
            problems.add(f"{found[0]!r} is a template, expected plain SQL", place, hint=hint)
    path = file.relative_to(folder).with_suffix("")
    target = _target(header, path, settings, problems)
    workflow_id = _workflow_id(header, target, settings, problems)
    problems.refuse(str(file))
    sources = _sources(text, header, settings, problems)
    problems.refuse(str(file))
    document = _document(header, workflow_id, target, text)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    origin = {"file": _escaped(origin_of(file, settings)), "digest": digest}
    document["Workflow"]["params"] = {f"{PARAM}<map>(constant)": origin}
    model = ModelFile(
        str(file),
        path.name,
        path.as_posix(),
        workflow_id,
        target,
        sources,
        text,
        header,
        json.dumps(document, ensure_ascii=False),
        digest,
    )
    try:
        spec.read(model.text, file=model.file)
    except InvalidWorkflow as error:
        raise model.located(error) from error
    return model


def origin_of(path: Path, settings: Settings) -> str:
    """A file or a folder from where the settings are, so that a project can be moved."""
    path = path.resolve()
    root = settings.root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _text(file: Path, problems: Problems) -> str:
    try:
        data = file.read_bytes()
        if len(data) > BYTES:
            problems.add(f"the file is larger than {BYTES:,} bytes", SourceLocation(1, 1))
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        problems.add("the file is not UTF-8", SourceLocation(1, 1))
        text = ""
    problems.refuse(str(file))
    return text.rstrip()


def _target(header: Header, path: Path, settings: Settings, problems: Problems) -> TableName:
    written = header.values.get("target")
    try:
        return _default_target(path, settings) if written is None else table_name(settings, written)
    except UserError as error:
        place = SourceLocation(header.lines.get("target", 1), 1)
        problems.add(error.message.removesuffix("."), place, "target", error.hint)
        return TableName("", (), "")


def _default_target(path: Path, settings: Settings) -> TableName:
    """The folders are the namespace, the file is the table."""
    *folders, name = path.parts
    namespace = folders or [*filter(None, (settings.default_namespace or "").split("."))]
    if not namespace:
        raise UserError(
            "the model has no namespace",
            hint="put the file into a folder with the namespace's name, or add: -- target: NAMESPACE.NAME",
        )
    if any("." in part for part in (*folders, name)):
        raise UserError(
            f"{path.as_posix()!r} has a dot, so it cannot name a table", hint="add: -- target: NAMESPACE.NAME"
        )
    return TableName(settings.default_catalog, tuple(namespace), name)


def _workflow_id(header: Header, target: TableName, settings: Settings, problems: Problems) -> str:
    """As the header says, or the name of the table."""
    named = header.values.get("workflow")
    is_default = target.catalog == settings.default_catalog
    found = str(named) if named else ".".join(target.identifier) if is_default else str(target)
    if target.name and (fault := fault_of_workflow_id(found)):
        place = SourceLocation(header.lines.get("workflow", header.lines.get("target", 1)), 1)
        hint = "add: -- workflow: ID" if named is None else None
        problems.add(f"{found!r} cannot be the id of a workflow: {fault}", place, "workflow", hint)
    return found


def _sources(text: str, header: Header, settings: Settings, problems: Problems) -> tuple[TableName, ...]:
    from dalsegno.rewrite.analysis import tables_in  # noqa: PLC0415 - it takes long to import

    try:
        return tuple(dict.fromkeys(table_name(settings, ".".join(name)) for name in tables_in(text)))
    except UserError as error:
        problems.add(error.message.removesuffix("."), SourceLocation(header.lines["query"], 1), "query", error.hint)
        return ()


def _document(header: Header, workflow_id: str, target: TableName, text: str) -> dict[str, Any]:
    fields = {word: _escaped(value) for word, value in header.step_fields.items()}
    block = {**fields, "target": _escaped(str(target)), "query": _escaped(text)}
    about = {word: value for word in ("owner", "tags", "description") if (value := header.values.get(word)) is not None}
    jobs = [{"job": {"id": STEP, "type": "Incremental", "incremental": block}}]
    document: dict[str, Any] = {"Workflow": {"id": workflow_id, **about, "jobs": jobs}}
    if trigger := header.values.get("schedule"):
        document["Trigger"] = trigger
    return document


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return _REFERENCE.sub("$$", value)
        case list():
            return [_escaped(item) for item in value]
        case dict():
            return {name: _escaped(item) for name, item in value.items()}
    return value


def _placed(problem: Problem, header: Header) -> Problem:
    """In the line of the word that the problem is about; otherwise where the SELECT begins."""
    words = [*re.findall(r"\w+", problem.path)][::-1]
    words += ["schedule"] if re.search(r"(?i)trigger|cron|timezone", problem.path) else []
    line = next((header.lines[word] for word in words if word in header.lines), header.lines["query"])
    return replace(problem, line=line, column=1)


def _refusals(models: Sequence[ModelFile]) -> list[InvalidWorkflow]:
    """Two of one target, or of one id; a model that reads itself."""
    found = []
    by_target: dict[object, ModelFile] = {}
    for model in models:
        for what, key in (("table", model.target), ("id", model.workflow_id)):
            other = by_target.setdefault(key, model)
            if other is not model:
                word = {"table": "target", "id": "workflow"}[what]
                hint = f"give each model a {what} of its own: -- {word}: NAME"
                found.append(_refusal(model, word, f"{other.file} has the same {what}, {key}", hint))
                break
        if model.target in model.sources:
            found.append(_refusal(model, "query", f"the SELECT reads its own target, {model.target}", None))
    return found


def _refusal(model: ModelFile, word: str, message: str, hint: str | None) -> InvalidWorkflow:
    return InvalidWorkflow([Problem(message, model.header.lines.get(word, 1), 1, word, hint)], file=model.file)
