"""Which fields of a step's block name files, and which of these are part of a version.

Those of built-in types are declared in ``spec.step_types``. The runner of a type of another package has them as its
attributes ``files`` and ``file_references``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from dalsegno.errors import DalsegnoError
from dalsegno.spec.step_types import added_types, step_type
from dalsegno.steps.registry import runner

NOTEBOOK = "notebook.input_path"
_SPARK = frozenset({"spark.file", "spark.script"})


@dataclass(frozen=True)
class FileFields:
    #: The content is part of a version.
    stored: frozenset[str] = frozenset()
    #: The content stays where it is: jars and folders.
    references: frozenset[str] = frozenset()


_NONE = FileFields()


def file_fields(type_name: str) -> FileFields:
    """Those of a type; none if it is not known here."""
    if known := step_type(type_name):
        stored, references = (
            frozenset(f"{known.block}.{each}" for each in own) for own in (known.files, known.file_references)
        )
        return FileFields(stored, references)
    if type_name.lower() not in added_types():
        return _NONE
    try:
        found = runner(type_name)
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
