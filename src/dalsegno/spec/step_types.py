"""The step types: the one place where a type is registered.

A new type is its runner (see ``steps.contract``) and one entry of ``STEP_TYPES``. This table is enough to read, check
and push a workflow; the runner is imported when a step of the type runs. Types of other packages are entry points of
the group ``dalsegno.steps``; only their runners know what their blocks hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalsegno.model.captures import ChangeKind, Mode
from dalsegno.model.snapshots import Operation
from dalsegno.spec.blocks import Block, BlockField, Kind, block

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "dalsegno.steps"

HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CONTAINER_ENGINES = ("docker", "podman")
#: What a capture does if there is nothing new.
SKIP, FAIL, CONTINUE = "skip", "fail", "continue"


@dataclass(frozen=True)
class StepType:
    """What is known of a type before a step of it runs."""

    #: What users write as ``type``; upper and lower case do not matter.
    name: str
    #: What a step of it does, in one line.
    summary: str
    #: The class that runs it, as ``module:class``. Empty: the type is understood, and ``instead`` runs the same.
    runner: str = ""
    instead: str = ""
    #: The fields of its block; None: they are not declared, so any is accepted.
    fields: Block | None = None
    #: Whether it has a block at all. One without takes its parameters as they are.
    has_block: bool = True
    #: Parameters beside the block that decide what it executes.
    closed_params: frozenset[str] = frozenset()
    #: The outputs that every step of it has, and no others; None: a run decides.
    outputs: frozenset[str] | None = None
    #: Fields that name files whose content is part of a version, and fields that name files that stay where they are.
    files: frozenset[str] = frozenset()
    file_references: frozenset[str] = frozenset()
    #: Whether somebody executes a job. If not, its steps need no permits.
    has_job: bool = True
    #: Whether a step of it may change a table.
    writes: bool = True
    #: Whether its runner records behind captures what it does, statement by statement.
    records_work: bool = False

    @property
    def block(self) -> str | None:
        """``ip_capture`` of IpCapture."""
        return _snake_case(self.name) if self.has_block else None


_FLAG, _SECONDS, _COUNT = (BlockField(kind) for kind in (Kind.FLAG, Kind.SECONDS, Kind.COUNT))
_METHOD = BlockField(words=HTTP_METHODS, is_exact=False)
_POLL = block("url", "headers", every=_SECONDS, cancel=BlockField(fields=block("url", method=_METHOD)))
_CAPTURE = block(
    *("keys", "range_columns", "branch", "from", "upto", "consumer"),
    capture_mode=BlockField(words=tuple(Mode), is_exact=False),
    data_operations=BlockField(words=tuple(Operation), is_exact=False),
    changes=BlockField(words=tuple(ChangeKind)),
    max_snapshots=_COUNT,
    max_bytes=_COUNT,
    when_nothing_new=BlockField(words=(SKIP, FAIL, CONTINUE)),
)

#: By the name in lower case; messages list them in this order.
STEP_TYPES: dict[str, StepType] = {
    each.name.lower(): each
    for each in (
        StepType(
            "NoOp",
            "do nothing",
            "dalsegno.steps.without_job:NoOpRunner",
            has_block=False,
            has_job=False,
            writes=False,
        ),
        StepType(
            "Sleep",
            "wait",
            "dalsegno.steps.without_job:SleepRunner",
            has_block=False,
            has_job=False,
            writes=False,
        ),
        StepType(
            "Shell",
            "run a script or a command",
            "dalsegno.steps.shell:ShellRunner",
            fields=block("script", "file", "command", "args", "env", "folder", "interpreter"),
            files=frozenset({"file"}),
        ),
        StepType(
            "Python",
            "run a script or a module",
            "dalsegno.steps.python:PythonRunner",
            fields=block("script", "file", "module", "args", "env", "folder", "interpreter"),
            files=frozenset({"file"}),
        ),
        StepType(
            "Incremental",
            "keep a table up to date that a SELECT declares",
            "dalsegno.steps.declared.runner:IncrementalRunner",
            fields=block(
                *("target", "query", "sources", "keys", "partitioned_by", "deterministic", "consumer", "conf"),
                *("facts", "dimensions", "pinned", "file", "function"),
                audit_first_runs=_COUNT,
                strategy=BlockField(
                    words=(
                        *("append", "append_new_joins", "append_new_keys"),
                        *("delta", "delta_of_new_joins", "delta_of_touched_keys"),
                        *("touched_partitions", "touched_keys", "full"),
                    )
                ),
                policy=BlockField(words=("strict", "prefer", "full")),
                companion=_FLAG,
            ),
            files=frozenset({"file"}),
            outputs=frozenset(
                {"has_changes", "capture_id", "strategy", "why", "target_table", "source_tables", "changed_dimensions"}
                | {"audit"}
            ),
            records_work=True,
        ),
        StepType(
            "Spark",
            "run SQL, a PySpark script or a jar",
            "dalsegno.steps.spark.runner:SparkRunner",
            fields=block(
                *("script", "file", "jar", "args", "env", "conf", "class", "master", "packages"),
                submit=_FLAG,
                idempotent=_FLAG,
                atomic=_FLAG,
                deploy_mode=BlockField(words=("client", "cluster")),
            ),
            files=frozenset({"file", "script"}),
            file_references=frozenset({"jar"}),
            records_work=True,
        ),
        StepType(
            "SQL",
            "run statements in a database",
            "dalsegno.steps.sql:SqlRunner",
            fields=block("connection", "script", "query", "file", "args"),
            files=frozenset({"file"}),
        ),
        StepType(
            "Notebook",
            "run a Jupyter notebook",
            "dalsegno.steps.notebook:NotebookRunner",
            fields=block("input_path", "output_path", "parameters", "papermill_arguments", "env", "folder"),
            files=frozenset({"input_path"}),
        ),
        StepType(
            "Java",
            "run a jar or a class",
            "dalsegno.steps.java:JavaRunner",
            fields=block("jar", "main_class", "class", "classpath", "args", "jvm_args", "env", "folder"),
            file_references=frozenset({"jar", "classpath"}),
        ),
        StepType(
            "Container",
            "run a container with docker or podman",
            "dalsegno.steps.container:ContainerRunner",
            fields=block(
                *("image", "command", "args", "env", "volumes", "cpu", "memory", "workdir", "user", "network"),
                engine=BlockField(words=CONTAINER_ENGINES),
            ),
        ),
        StepType(
            "HTTP",
            "send a request, or follow a job on a server",
            "dalsegno.steps.http.runner:HttpRunner",
            fields=block(
                *("url", "headers", "body"),
                method=_METHOD,
                timeout=_SECONDS,
                follow_redirects=_FLAG,
                poll=BlockField(fields=_POLL),
            ),
            closed_params=frozenset({"state_expr"}),
            outputs=frozenset({"status_code", "response_body"}),
        ),
        StepType("Kubernetes", "a container in a cluster", instead="Container"),
        StepType("Titus", "a container in Netflix's cluster", instead="Container"),
        StepType(
            "IpCapture",
            "capture what changed in a table since the checkpoint",
            "dalsegno.steps.incremental:CaptureRunner",
            fields={**_CAPTURE, **block("source_tables")},
            writes=False,
        ),
        StepType(
            "IpCommit",
            "commit a capture: move the checkpoint past it",
            "dalsegno.steps.incremental:CommitRunner",
            fields=block("capture_step"),
            outputs=frozenset({"capture_id"}),
            writes=False,
        ),
        StepType(
            "ICDC",
            "capture into a table with a fixed name, and commit when the run succeeds",
            "dalsegno.steps.incremental:IcdcRunner",
            fields={**_CAPTURE, **block("sourceTable", "source_table", "targetTable", "target_table")},
            writes=False,
        ),
    )
}


def step_type(name: str) -> StepType | None:
    """The built-in type of this name; upper and lower case do not matter."""
    return STEP_TYPES.get(name.lower())


def records_work(type_name: str) -> bool:
    """Whether the runner of a type records behind captures what it does."""
    known = step_type(type_name)
    return known is not None and known.records_work


def added_types() -> dict[str, EntryPoint]:
    """The types of other packages that are installed, by name in lower case; none replaces a built-in one."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes as long as reading a workflow

    return {point.name.lower(): point for point in entry_points(group=GROUP) if point.name.lower() not in STEP_TYPES}


def block_of(type_name: str) -> str | None:
    """What the block of parameters of a type is called; None if it has none."""
    known = step_type(type_name)
    return known.block if known else _snake_case(type_name)


def blocks() -> dict[str, Block]:
    """The blocks whose fields are declared, by name."""
    return {each.block: each.fields for each in STEP_TYPES.values() if each.block and each.fields is not None}


def fields_of(path: str) -> Block | None:
    """The fields of a block, or of a part of one such as ``http.poll``; None if it is not declared here."""
    name, *inner = path.split(".")
    found = blocks().get(name)
    for each in inner:
        found = found[each].fields if found and each in found else None
    return found or None


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
