"""The content of files that steps name. Each content is stored once, whoever refers to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Table, delete, insert, select

from dalsegno.model.step_files import StepFile
from dalsegno.store import row_queries
from dalsegno.store.database import lock
from dalsegno.store.file_tables import file_contents, template_files, version_files
from dalsegno.store.row_queries import Row
from dalsegno.store.run_queries import file_of


def add_to_version(
    connection: Connection, workflow_id: str, version: int, files: Sequence[StepFile], contents: Mapping[str, str]
) -> None:
    """Let a new version have these files; ``contents`` are by digest."""
    _add_contents(connection, contents)
    for each in files:
        owner = {"workflow_id": workflow_id, "version": version, "step_id": each.step_id}
        connection.execute(insert(version_files).values(**owner, **_reference(each)))


def add_to_template(
    connection: Connection, job_type: str, version: str, files: Sequence[StepFile], contents: Mapping[str, str]
) -> None:
    """Let a job template that has none have these files."""
    _add_contents(connection, contents)
    for each in files:
        connection.execute(insert(template_files).values(job_type=job_type, version=version, **_reference(each)))


def forget_template(connection: Connection, job_type: str, version: str | None) -> None:
    """Remove the files of a job template."""
    mine = [template_files.c.job_type == job_type] + ([template_files.c.version == version] if version else [])
    connection.execute(delete(template_files).where(*mine))


def remove_unused(connection: Connection) -> int:
    """Remove the contents that no version and no job template refers to; how many there were."""
    # Somebody may be about to refer to one of them.
    lock(connection, _LOCK)
    is_unused = [
        file_contents.c.digest.not_in(select(table.c.digest).where(table.c.digest.is_not(None)))
        for table in (version_files, template_files)
    ]
    return connection.execute(delete(file_contents).where(*is_unused)).rowcount


def of_template(connection: Connection, job_type: str, version: str) -> list[StepFile]:
    mine = (template_files.c.job_type == job_type, template_files.c.version == version)
    return [file_of(row) for row in _rows(connection, template_files, *mine)]


def content(connection: Connection, digest: str) -> str | None:
    return connection.scalar(select(file_contents.c.content).where(file_contents.c.digest == digest))


_LOCK = "file contents"


def _add_contents(connection: Connection, contents: Mapping[str, str]) -> None:
    if not contents:
        return
    lock(connection, _LOCK)
    found = connection.execute(select(file_contents.c.digest).where(file_contents.c.digest.in_(contents)))
    known = set(found.scalars())
    for digest, text in contents.items():
        if digest not in known:
            values = {"digest": digest, "size": len(text.encode()), "content": text}
            connection.execute(insert(file_contents).values(**values))


def _reference(file: StepFile) -> dict[str, str | None]:
    return {"field": file.field, "name": file.name, "digest": file.digest, "unstored": file.unstored}


def _rows(connection: Connection, table: Table, *conditions: object) -> list[Row]:
    found = (
        select(table, file_contents.c.size)
        .outerjoin(file_contents, file_contents.c.digest == table.c.digest)
        .where(*conditions)  # type: ignore[arg-type]
        .order_by(*table.primary_key.columns)
    )
    return row_queries.rows(connection, found)
