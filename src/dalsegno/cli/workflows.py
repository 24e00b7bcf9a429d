"""The commands that only look at a workflow's text and the files that it names: no store and no catalog is opened."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalsegno.cli import completion
from dalsegno.cli.output import reporting, to_json
from dalsegno.clock import utc_now
from dalsegno.errors import InvalidWorkflow, Problem, SettingsError, UnknownName

if TYPE_CHECKING:
    from dalsegno.spec.problems import Problems
    from dalsegno.spec.workflows import ReadWorkflow

Files = Annotated[list[str], typer.Argument(metavar="FILE", help="A workflow in YAML or JSON; - reads standard input.")]
FilesOrFolders = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="A workflow in YAML or JSON, or a folder of models; - reads standard input."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
#: What a workflow's file is called; an id may end so as well, but hardly does.
SUFFIXES = (".yaml", ".yml", ".json")
Templates = Annotated[
    list[str] | None,
    typer.Option(
        "--template",
        metavar="NAME",
        help="Accept this job template as a step type. Repeatable.",
        autocompletion=completion.templates,
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(validate)
    app.command("format")(format_files)
    app.command()(schema)


def validate(
    files: FilesOrFolders,
    templates: Templates = None,
    json: Json = False,
) -> None:
    """Check workflows without storing them.

    The command prints all problems of all files, each with line and column. The exit code is 2 if there are any.
    Warnings do not count.
    """
    with reporting(as_json=json):
        reports = [report for file in files for report in _checked_all(file, templates or [])]
        if json:
            print(to_json({"files": [report.plain() for report in reports]}))
        else:
            for report in reports:
                report.tell()
    if not all(report.is_valid for report in reports):
        raise typer.Exit(2)


@dataclass(frozen=True)
class _Report:
    """What was found in one file."""

    file: str
    problems: tuple[Problem, ...]
    #: None if it cannot be read.
    workflow_id: str | None = None
    steps: int = 0
    #: In words, if the workflow is not valid.
    refusal: str = ""

    @property
    def is_valid(self) -> bool:
        return self.workflow_id is not None

    def plain(self) -> dict[str, Any]:
        from dalsegno.operations.json_values import problem_fields  # noqa: PLC0415 - not for --help

        found = {
            "file": self.file,
            "valid": self.is_valid,
            "problems": [problem_fields(each) for each in self.problems],
        }
        if self.workflow_id is None:
            return found
        return {**found, "workflow_id": self.workflow_id, "steps": self.steps}

    def tell(self) -> None:
        if self.workflow_id is None:
            print(self.refusal, file=sys.stderr)
            return
        for problem in self.problems:
            print(problem.located(self.file), file=sys.stderr)
        print(f"{self.file}: {self.workflow_id} is valid, {self.steps} {'step' if self.steps == 1 else 'steps'}")


def _checked_all(file: str, templates: list[str]) -> list[_Report]:
    """What was found in a file, or in each model of a folder."""
    if not Path(file).is_dir():
        return [_checked(file, templates)]
    from dalsegno.operations.facade import Operations  # noqa: PLC0415 - not for --help
    from dalsegno.operations.models.model_files import InvalidModels  # noqa: PLC0415

    with Operations.open() as operations:
        try:
            models = operations.models.check(Path(file))
        except InvalidWorkflow as error:
            errors = error.errors if isinstance(error, InvalidModels) else (error,)
            return [_Report(each.file, each.problems, refusal=each.message) for each in errors]
        return [_Report(each.file, (), each.workflow_id, 1) for each in models]


def _checked(file: str, templates: list[str]) -> _Report:
    from dalsegno.spec.job_templates import built_in  # noqa: PLC0415
    from dalsegno.spec.problems import Problems  # noqa: PLC0415
    from dalsegno.spec.reading.context import TEMPLATE, StepTypes  # noqa: PLC0415 - PyYAML is not for --help
    from dalsegno.spec.workflows import read  # noqa: PLC0415

    data = read_file(file)
    try:
        types = StepTypes(templates=dict.fromkeys([*built_in(), *templates], TEMPLATE))
        found = read(data, file=file, types=types, now=utc_now())
        problems = Problems()
        _check_settings(found, problems)
        problems.refuse(file)
    except InvalidWorkflow as error:
        return _Report(file, error.problems, refusal=error.message)
    workflow = found.definition.workflow
    return _Report(file, (*found.warnings, *problems.warnings), workflow.id, sum(1 for _ in workflow.all_steps()))


def _check_settings(found: ReadWorkflow, problems: Problems) -> None:
    """Look for the files that steps name, which start from where the settings are, and for channels of alerts."""
    from dalsegno.operations.channels import check_channels  # noqa: PLC0415
    from dalsegno.operations.step_files import files_of_workflow  # noqa: PLC0415
    from dalsegno.settings import load  # noqa: PLC0415
    from dalsegno.spec.nodes import SourceLocation  # noqa: PLC0415

    try:
        settings = load()
    except SettingsError as error:
        # They may need variables that are only there in production.
        problems.add(
            f"files of steps and channels of alerts are not checked: {error.message.removesuffix('.')}",
            SourceLocation(1, 1),
            warning=True,
        )
        return
    files_of_workflow(found.definition.workflow, found.marks, settings, problems)
    # Where there are none at all, those of production are most likely elsewhere.
    is_warning = not settings.notifications
    check_channels(found.definition, found.marks, settings, problems, is_warning=is_warning)


def read_file(file: str) -> bytes:
    """At most as much as a workflow may have, and a byte."""
    from dalsegno.spec.documents import BYTES  # noqa: PLC0415

    if file == "-":
        return sys.stdin.buffer.read(BYTES + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(BYTES + 1)
    except OSError as error:
        raise UnknownName(f"The file {file} cannot be read: {error.strerror}.") from error


def format_files(
    files: Files,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing. The exit code is 2 if a file would change.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Expand anchors and aliases.")] = False,
    json: Json = False,
) -> None:
    """Format workflow files in the standard style.

    This changes indentation, quotes and the order of fields, never values or comments. JSON stays JSON. With - it reads
    standard input and writes standard output.
    """
    from dalsegno.spec.formatting import formatted  # noqa: PLC0415 - PyYAML is not for --help

    changed = []
    text: str | None = None
    with reporting(as_json=json):
        for file in files:
            before = read_file(file)
            after = formatted(before, file=file, force=force).encode()
            if file == "-" and not check:
                text = after.decode()
                if not json:
                    sys.stdout.write(text)
            elif after != before:
                changed.append(file)
                if not check:
                    Path(file).write_bytes(after)
    if json:
        print(to_json({"changed": changed, "is_written": not check, "text": text}))
    else:
        for file in changed:
            print(f"{'would change' if check else 'changed'} {file}")
    if check and changed:
        raise typer.Exit(2)


def schema() -> None:
    """Print the JSON Schema of workflows, for editors."""
    import json  # noqa: PLC0415 - not for --help

    from dalsegno.spec.schema import workflow_schema  # noqa: PLC0415

    print(json.dumps(workflow_schema(), indent=2, ensure_ascii=False))
