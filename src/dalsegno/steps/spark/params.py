"""What a Spark step asks for: SQL or a script in a session of Spark Connect, or a driver of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalsegno.errors import UserError
from dalsegno.model.refreshes import Refresh
from dalsegno.model.work_units import WorkUnit
from dalsegno.spark.statements import statements
from dalsegno.steps.contract import FilledText, Work
from dalsegno.steps.fields import Fields, SourceFile
from dalsegno.steps.file_fields import file_name

BLOCK = "spark"
_FOR_SUBMISSION = ("class", "master", "deploy_mode", "packages")


@dataclass(frozen=True)
class Concluded:
    """What a step returns and remembers, once every statement is done."""

    outputs: Mapping[str, Any]
    refresh: Refresh | None


@dataclass(frozen=True)
class Sql:
    statements: tuple[str, ...]
    #: The text of its file, before parameters are filled in.
    file_text: str | None = None
    #: The parameter that holds what the author wrote.
    block: str = BLOCK
    #: What the step decided, as JSON: stored with its first statement.
    decision: Mapping[str, Any] | None = None
    #: Says what the step returns beside what its last query does, from what is stored of its work.
    conclude: Callable[[WorkUnit], Concluded] | None = None


@dataclass(frozen=True)
class Script:
    """A PySpark script."""

    source: SourceFile


@dataclass(frozen=True)
class Jar:
    #: Where it is, is Spark's business: it may be on another machine.
    address: str


@dataclass(frozen=True)
class Submission:
    """What ``spark-submit`` is told beyond the job itself."""

    main_class: str | None
    master: str | None
    deploy_mode: str | None
    packages: tuple[str, ...]


@dataclass(frozen=True)
class SparkStep:
    job: Sql | Script | Jar
    #: For a script or a jar.
    args: tuple[str, ...]
    #: Environment variables of the process.
    variables: Mapping[str, str]
    #: Spark's configuration for this step alone.
    conf: Mapping[str, str]
    #: If it is to have a driver of its own.
    submission: Submission | None
    #: What must not be shown, beyond the secrets that the parameters hold.
    secrets: tuple[str, ...]
    #: The author says that executing all of it again, however far it came, leaves the same.
    is_idempotent: bool = False
    #: Its statements are published together, or not at all.
    is_atomic: bool = False


def spark_step(work: Work) -> SparkStep:
    """The step's parameters, understood; a ``UserError`` says what is not."""
    fields = Fields(work, BLOCK)
    job, secrets = _job(work, fields)
    is_submitted = isinstance(job, Jar) or fields.flag("submit")
    if not is_submitted and (unused := [name for name in _FOR_SUBMISSION if fields.values.get(name)]):
        raise UserError(f"{BLOCK}.{unused[0]} is for what is submitted.", hint="Add to the step: submit: true")
    is_atomic = fields.flag("atomic")
    if is_atomic and (is_submitted or not isinstance(job, Sql)):
        raise UserError(
            f"{BLOCK}.atomic is for SQL that is executed in a session of Spark Connect.",
            hint="Remove it, or write the step as SQL, without 'submit: true'.",
        )
    submission = Submission(
        fields.text("class"), fields.text("master"), fields.text("deploy_mode"), tuple(fields.texts("packages"))
    )
    return SparkStep(
        job,
        tuple(fields.texts("args")),
        fields.variables(),
        {key: fields.plain(f"conf.{key}", value) for key, value in fields.mapping("conf").items()},
        submission if is_submitted else None,
        secrets,
        is_idempotent=fields.flag("idempotent"),
        is_atomic=is_atomic,
    )


def _job(work: Work, fields: Fields) -> tuple[Sql | Script | Jar, tuple[str, ...]]:
    """The job, and the secrets in it."""
    kind = fields.one_of("script", "file", "jar")
    given = fields.required(kind)
    if kind == "jar":
        return Jar(given if "://" in given else str(fields.file("jar"))), ()
    name = file_name(f"{BLOCK}.{kind}", given)
    suffix = Path(name).suffix.lower() if name is not None and "\n" not in name else ""
    if suffix not in (".py", ".sql") and kind == "file":
        raise UserError(f"{BLOCK}.file is {name!r}, expected the name of a .sql or .py file.")
    if suffix == ".py":
        return Script(fields.source(kind)), ()
    sql, file_text = FilledText(given), None
    if suffix == ".sql":
        file_text = fields.source(kind).text()
        sql = work.filled(file_text)
    found = statements(sql.text)
    if not found:
        raise UserError(f"{BLOCK}.{kind} holds no SQL statement.")
    return Sql(tuple(found), file_text), sql.secrets
