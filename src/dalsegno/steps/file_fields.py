"""Which fields of a step's block name files, and which of these are part of a version.

A table, because a workflow is pushed and validated without loading what runs its steps. A type of another package says
it with the attributes ``files`` and ``file_references`` of its runner.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from dalsegno.errors import DalsegnoError
from dalsegno.steps.registry import BUILT_IN, added_types, runner

NOTEBOOK = "notebook.input_path"
_SPARK = frozenset({"spark.file", "spark.script"})


@dataclass(frozen=True)
class FileFields:
    #: The content is part of a version.
    stored: frozenset[str] = frozenset()
    #: The content stays where it is: jars and folders.
    references: frozenset[str] = frozenset()


_NONE = FileFields()
_BUILT_IN = {
    "java": FileFields(references=frozenset({"java.jar", "java.classpath"})),
    "notebook": FileFields(frozenset({NOTEBOOK})),
    "python": FileFields(frozenset({"python.file"})),
    "shell": FileFields(frozenset({"shell.file"})),
    "spark": FileFields(_SPARK, references=frozenset({"spark.jar"})),
    "sql": FileFields(frozenset({"sql.file"})),
}


def file_fields(step_type: str) -> FileFields:
    """Those of a type; none if it is not known here."""
    name = step_type.lower()
    if name in BUILT_IN or name not in added_types():
        return _BUILT_IN.get(name, _NONE)
    try:
        found = runner(name)
    except DalsegnoError:
        # Whoever runs it may have it; that it cannot be loaded is said there.
        return _NONE
    return FileFields(
        frozenset(getattr(found, "files", frozenset())), frozenset(getattr(found, "file_references", frozenset()))
    )


def file_name(field: str, text: str) -> str | None:
    """The file that a field's text names, if it names one: ``spark.script`` holds SQL, or the name of a file."""
    if field not in _SPARK:
        return text
    name = text.strip()
    is_name = "\n" not in name and PurePath(name).suffix.lower() in (".py", ".sql")
    return name if is_name or field == "spark.file" else None


def is_sql(field: str, name: str) -> bool:
    """Whether the file holds SQL, which must be UTF-8."""
    return field == "sql.file" or (field in _SPARK and name.lower().endswith(".sql"))
