"""Models for people."""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING

from dalsegno.cli.colours import paint
from dalsegno.cli.output import counted
from dalsegno.cli.run_text import brief, sign

if TYPE_CHECKING:
    from dalsegno.operations.dbt.importing import Imported
    from dalsegno.operations.models.results import ModelResult, ModelsRun, PushedModels
    from dalsegno.operations.projects import CreatedProject

_SIGNS = {"refreshed": "SUCCEEDED", "unchanged": "NOT_CREATED", "failed": "FAILED", "not_run": "UNSATISFIED"}


def result(found: ModelResult) -> str:
    """One line, and what to do if it failed."""
    words = [f"{sign(_SIGNS[found.status])} {found.model}"]
    match found.status:
        case "refreshed":
            words += [found.strategy or "", _rows(found), f"{found.seconds:.1f} s"]
        case "unchanged":
            words.append("unchanged")
        case "failed":
            words += ["failed", brief(found.reason or "")]
        case "not_run":
            words += ["not run", found.reason or ""]
    line = "  ".join(filter(None, words))
    return f"{line}\n{paint(f'    → {found.hint}', 'dim')}" if found.hint else line


def summary(found: ModelsRun) -> str:
    counts = Counter(each.status for each in found.models)
    said = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
    rows = sum(each.added_rows for each in found.models)
    lines = [f"{counted(len(found.models), 'model')}: {said}; {counted(rows, 'row')} written in {found.seconds:.1f} s"]
    return "\n".join([*lines, *_removed(found.without_file)])


def pushed(found: PushedModels) -> str:
    lines = [f"Pushed {each.workflow_id} as version {each.version}." for each in found.models if each.is_new]
    same = sum(not each.is_new for each in found.models)
    if same:
        lines.append(f"{counted(same, 'model')} had not changed.")
    return "\n".join([*lines, *_removed(found.without_file)])


def _removed(workflow_ids: tuple[str, ...]) -> list[str]:
    return [f"{each} has no file any more. To delete the workflow: dalsegno delete {each}" for each in workflow_ids]


def created(found: CreatedProject) -> str:
    lines = [f"Created {file}" for file in found.created]
    lines += [f"Kept {file}, which was there already" for file in found.kept]
    folder = [] if found.folder == "." else [f"cd {quote(found.folder)}"]
    steps = [*folder, "dalsegno run seed.yaml", "dalsegno run models"]
    return "\n".join([*lines, "", "Next:", *(f"  {step}" for step in steps)])


def imported(found: Imported) -> str:
    lines = [f"{each.file}  {each.target}{'' if each.is_written else '  unchanged'}" for each in found.models]
    lines += [f"Not imported: {each.name} ({each.kind}): {each.reason}" for each in found.left_out]
    lines += [f"Note: {note}" for note in found.notes]
    if found.models:
        lines += ["", f"Next: dalsegno run {quote(found.folder)}"]
    return "\n".join(lines)


def _rows(found: ModelResult) -> str:
    if not found.removed_rows:
        return f"+{counted(found.added_rows, 'row')}"
    return f"+{found.added_rows:,} \N{MINUS SIGN}{found.removed_rows:,} rows"
