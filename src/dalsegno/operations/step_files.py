"""Reads the files that steps name when a workflow or a job template is pushed, so that they are part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dalsegno.errors import UserError
from dalsegno.model.params import ParamDefinitions
from dalsegno.model.step_files import StepFile, Unstored, digest_of_content
from dalsegno.model.templates import JobTemplate
from dalsegno.model.workflow import JobStep, Workflow
from dalsegno.settings import Settings
from dalsegno.spec.documents import BYTES
from dalsegno.spec.nodes import NOWHERE, SourceLocation
from dalsegno.spec.problems import Problems
from dalsegno.spec.reference_checks import StepReferences
from dalsegno.spec.step_files import NamedFile, named_files
from dalsegno.spec.step_references import in_text
from dalsegno.steps.fields import allowed_path
from dalsegno.steps.file_fields import NOTEBOOK, FileFields, file_fields, file_name, is_sql

#: Notebooks hold the results of their cells, too.
NOTEBOOK_BYTES = 10 * BYTES

Marks = Mapping[tuple[str, ...], SourceLocation]


@dataclass(frozen=True)
class FoundFiles:
    """The files that a workflow or a job template names."""

    files: tuple[StepFile, ...] = ()
    #: What those that are stored hold, by digest.
    contents: Mapping[str, str] = field(default_factory=dict)


class _NotText(Exception):
    """The file is not UTF-8 text."""


def files_of_workflow(workflow: Workflow, marks: Marks, settings: Settings, problems: Problems) -> FoundFiles:
    """What is wrong with a file is added to the problems, at the place that names it."""
    reader = _Reader(settings, marks, problems)
    # Looking for the types of other packages takes milliseconds.
    fields_of = cache(file_fields)
    for step in workflow.all_steps():
        if isinstance(step, JobStep):
            reader.read(step.id, step.params, fields_of(step.type))
    _check_references(workflow, reader.found(), marks, problems)
    return reader.found()


def _check_references(workflow: Workflow, found: FoundFiles, marks: Marks, problems: Problems) -> None:
    """References in files of SQL for Spark, in which the values of parameters are filled in."""
    made_here = {step.id for step in workflow.all_steps() if isinstance(step, JobStep) and step.sub_type is None}
    judge = StepReferences(workflow)
    for file in found.files:
        block, _, name = file.field.partition(".")
        if (
            file.step_id not in made_here
            or block != "spark"
            or file.digest is None
            or not is_sql(file.field, file.name)
        ):
            continue
        mark = marks.get(("field", file.step_id, block, name), NOWHERE)
        for reference in in_text(found.contents[file.digest]):
            if fault := judge.fault(file.step_id, reference):
                message = f"{file.name}: {fault.message}"
                problems.add(message, mark, f"{file.step_id}.{file.field}", fault.hint, warning=fault.is_warning)


def files_of_template(template: JobTemplate, marks: Marks, settings: Settings, problems: Problems) -> FoundFiles:
    reader = _Reader(settings, marks, problems)
    reader.read("", template.params, file_fields(template.step_type))
    return reader.found()


class _Reader:
    def __init__(self, settings: Settings, marks: Marks, problems: Problems) -> None:
        self._settings = settings
        self._marks = marks
        self._problems = problems
        self._files: list[StepFile] = []
        self._contents: dict[str, str] = {}
        #: What was read, by path and limit: one push reads a file once.
        self._known: dict[tuple[Path, int], str] = {}

    def found(self) -> FoundFiles:
        # A list may name the same file twice.
        return FoundFiles(tuple(dict.fromkeys(self._files)), self._contents)

    def read(self, owner: str, params: ParamDefinitions, fields: FileFields) -> None:
        """Read what the step or the template of these parameters names."""
        for named in named_files(params, fields.stored, file_name):
            self._read(owner, named)
        for named in named_files(params, fields.references, file_name):
            self._leave(owner, named, Unstored.REFERENCE)

    def _read(self, owner: str, named: NamedFile) -> None:
        if not named.is_known:
            self._leave(owner, named, Unstored.PARAMETERS)
            because = f"{named.field} is only known at run time: the file is read then, and is not part of the version"
            self._add(owner, named, because, "write its name without parameters", warning=True)
            return
        if "://" in named.name:
            self._leave(owner, named, Unstored.REFERENCE)
            return
        try:
            content = self._content(named)
        except UserError as error:
            self._add(owner, named, error.message.removesuffix("."), error.hint)
            return
        except _NotText:
            self._leave(owner, named, Unstored.REFERENCE)
            because = (
                f"{named.field}: {named.name} is not UTF-8 text: it is read at run time, and is not part of the version"
            )
            self._add(owner, named, because, warning=True)
            return
        digest = digest_of_content(content)
        self._contents[digest] = content
        self._files.append(StepFile(owner, named.field, named.name, digest, len(content.encode())))

    def _leave(self, owner: str, named: NamedFile, why: Unstored) -> None:
        self._files.append(StepFile(owner, named.field, named.name, unstored=why))

    def _content(self, named: NamedFile) -> str:
        limit = NOTEBOOK_BYTES if named.field == NOTEBOOK else BYTES
        path = allowed_path(named.name, self._settings, named.field)
        if (path, limit) not in self._known:
            self._known[path, limit] = _read_text(path, named, limit, self._settings.root)
        return self._known[path, limit]

    def _add(
        self, owner: str, named: NamedFile, message: str, hint: str | None = None, *, warning: bool = False
    ) -> None:
        block, _, name = named.field.partition(".")
        mark = self._marks.get(("field", owner, block, name)) or self._marks.get(("param", owner, block), NOWHERE)
        path = f"{owner}.{named.field}" if owner else named.field
        self._problems.add(message, mark, path, hint and hint.removesuffix("."), warning=warning)


def _read_text(path: Path, named: NamedFile, limit: int, root: Path) -> str:
    if not path.is_file():
        raise UserError(f"{named.field}: there is no file {path}.", hint=f"paths start from {root}")
    try:
        with path.open("rb") as opened:
            data = opened.read(limit + 1)
    except OSError as error:
        raise UserError(f"{named.field}: {path} cannot be read: {error.strerror}.") from error
    must_be_text = is_sql(named.field, named.name)
    if b"\0" in data and not must_be_text:
        raise _NotText
    if len(data) > limit:
        raise UserError(
            f"{named.field}: {path} is larger than {limit:,} bytes, the most that a version stores of a file.",
            hint="split it, or move data out of it",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not must_be_text:
            raise _NotText from error
        raise UserError(f"{named.field}: {path} is not UTF-8: {error}.", hint="save it as UTF-8") from error
    if "\0" in text:
        raise UserError(f"{named.field}: {path} holds a NUL character, which is not text.")
    return text
