"""Folders of models on the command line, and what makes them: ``init`` and ``import dbt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dalsegno.cli.output import opened, reporting, show, tell_warnings, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalsegno.model.full_refresh import FullRefresh
    from dalsegno.operations.facade import Operations
    from dalsegno.operations.models.results import ModelResult

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="Use this settings file instead of the nearest dalsegno.toml."),
]
#: How a process ends if a model failed: as for a run.
_FAILED = 10

imports = typer.Typer(help="Import models from other tools.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.add_typer(imports, name="import", no_args_is_help=True)


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where; by default, here.")] = Path(),
    json: Json = False,
) -> None:
    """Create a project: settings, an example model and data for it.

    Files that exist are kept.
    """
    with reporting(as_json=json):
        from dalsegno.cli import models_text  # noqa: PLC0415 - not for --help
        from dalsegno.operations.projects import create_project  # noqa: PLC0415

        show(create_project(folder), models_text.created, as_json=json)


@imports.command("dbt")
def import_dbt(
    manifest: Annotated[
        Path, typer.Argument(metavar="MANIFEST", help="The target/manifest.json of a compiled project.")
    ],
    into: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the models.")] = Path("models"),
    catalog: Annotated[
        str | None, typer.Option(metavar="NAME", help="The catalog of all tables. By default, default_catalog.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite models that have changed.")] = False,
    json: Json = False,
    settings: SettingsFile = None,
) -> None:
    """Write the compiled models of a dbt project as .sql files.

    Compile the project first: dbt compile --full-refresh. dbt is not needed afterwards.
    """
    with opened(settings, as_json=json) as operations:
        from dalsegno.cli import models_text  # noqa: PLC0415 - not for --help
        from dalsegno.operations.dbt.importing import import_manifest  # noqa: PLC0415

        found = import_manifest(manifest, into, operations.settings, catalog=catalog, is_forced=force)
        show(found, models_text.imported, as_json=json)


def is_folder_of_models(text: str, operations: Operations) -> bool:
    """Whether it means a folder; a workflow with the same name counts first, unless it is written as a path."""
    if not Path(text).is_dir():
        return False
    return "/" in text or text.startswith(".") or operations.workflows.newest_version(text) is None


def push_folder(operations: Operations, folder: Path, *, as_json: bool) -> None:
    from dalsegno.cli import models_text  # noqa: PLC0415 - not for --help

    found = operations.models.push(folder)
    for pushed in () if as_json else found.models:
        tell_warnings(pushed.warnings, Path(pushed.workflow_id))
    show(found, models_text.pushed, as_json=as_json)


def run_folder(
    operations: Operations,
    folder: Path,
    select: Sequence[str],
    full_refresh: FullRefresh | None,
    *,
    as_json: bool,
) -> None:
    """Run the models of a folder in this process, and print a line for each."""
    from dalsegno.cli import models_text, running  # noqa: PLC0415 - not for --help

    def report(result: ModelResult) -> None:
        if not as_json:
            print(models_text.result(result), flush=True)

    found = operations.models.run(
        folder,
        select=select,
        full_refresh=full_refresh,
        finish=lambda run: running.run_here(operations, run, is_quiet=True),
        report=report,
    )
    if as_json:
        print(to_json(found))
    else:
        print(models_text.summary(found))
    if not found.is_success:
        raise typer.Exit(_FAILED)
