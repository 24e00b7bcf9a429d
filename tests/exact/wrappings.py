"""Workflows around a script: what captures, what calls the step that writes, and what commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tests.exact.forms import Form

#: True, after a second or two.
_SLOW = "(SELECT count(DISTINCT id % 7) FROM range(4000000)) = 7"
_ROWS = "SELECT id, part, v FROM {table}"
_AT_ONCE = {"error_retry_limit": 0, "platform_retry_limit": 0}
#: As few seconds as can be.
_SOON = {
    "type": "FIXED_BACKOFF",
    "error_retry_backoff_in_secs": 1,
    "platform_retry_backoff_in_secs": 1,
}


@dataclass(frozen=True)
class Wrapping:
    """A way to call a script. ``times``: how often a script is executed behind each capture."""

    name: str
    times: int = 1
    #: Whether the script is executed for a part of the rows, or for the same partitions again.
    is_rowwise: bool = False
    has_two_sources: bool = False
    #: The sign of the ids that each row gets in the target.
    signs: tuple[int, ...] = (1,)


WRAPPINGS = (
    Wrapping("plain"),
    Wrapping("subworkflow"),
    Wrapping("remediation"),
    Wrapping("foreach", times=2, is_rowwise=True),
    Wrapping("two captures", is_rowwise=True, has_two_sources=True),
    Wrapping("two steps", times=2, is_rowwise=True, signs=(1, -1)),
)


@dataclass(frozen=True)
class Edit:
    """What people change in a workflow that failed."""

    #: Put in front of the script.
    in_front: tuple[str, ...] = ()
    at_end: tuple[str, ...] = ()
    is_swapped: bool = False
    #: Appended to the first statement that writes.
    wording: str = ""
    step: str = "write"
    #: Appended to the workflow's id.
    suffix: str = ""


@dataclass(frozen=True)
class Written:
    """The workflows of a scenario, as YAML; the last one is the one to run."""

    texts: tuple[str, ...]
    workflow_id: str
    #: The step of it that writes, or that calls what writes.
    step: str


@dataclass(frozen=True)
class Author:
    """Writes the workflows of one scenario."""

    name: str
    form: Form
    wrapping: Wrapping
    tables: Mapping[str, str]
    sources: Sequence[str]
    retries: int = 0
    is_parallel: bool = False
    #: Whether statements take a second or more.
    is_slow: bool = False

    @property
    def consumer(self) -> str:
        return self.name

    def write(self, edit: Edit | None = None) -> Written:
        edit = edit or Edit()
        name = f"{self.name}{edit.suffix}"
        match self.wrapping.name:
            case "plain":
                return self._one(name, [self._step(edit.step, self._script(edit))], edit.step)
            case "two captures":
                rows = " UNION ALL ".join(
                    _ROWS.format(table=f"${{{step}.change_table}}") for step in ("capture", "more")
                )
                return self._one(name, [self._step(edit.step, self._script(edit, f"({rows})"))], edit.step)
            case "two steps":
                rows = "(SELECT -id AS id, part, v FROM ${capture.change_table})"
                steps = [self._step(edit.step, self._script(edit)), self._step("again", self._script(edit, rows))]
                return self._one(name, steps, edit.step)
            case "foreach":
                rows = "(SELECT id, part, v FROM ${capture.change_table} WHERE id % 2 = ${i})"
                inside = [self._step(edit.step, self._script(edit, rows))]
                loop = {"foreach": {"id": "each", "concurrency": 1, "strict_ordering": True,
                                    "loop_params": {"i": [0, 1]}, "jobs": inside}}  # fmt: skip
                return self._one(name, [loop], "each")
        return self._called(name, edit)

    def _called(self, name: str, edit: Edit) -> Written:
        rows, predicate = f"({_ROWS.format(table='${source}')})", "${predicate}"
        inner = self._workflow(f"{name}.load", [self._step(edit.step, self._script(edit, rows, predicate))])
        given = {"source": "${capture.change_table}", "predicate": "${capture.partition_filter}"}
        if self.wrapping.name == "subworkflow":
            call = {"subworkflow": {"id": "call", "workflow_id": f"{name}.load", **given}}
            outer = self._one(name, [call], "call")
            return Written((inner, *outer.texts), name, "call")
        names = {"source": "${source}", "predicate": "${predicate}"}
        remediation = self._workflow(
            f"{name}.remediation",
            [
                {"subworkflow": {"id": "normal_workflow", "workflow_id": f"{name}.load",
                                 "failure_mode": "IGNORE_FAILURE", **names}},
                {"job": {"id": "check_status", "type": "NoOp"}},
                {"subworkflow": {"id": "re_run", "workflow_id": f"{name}.load", **names}},
                {"job": {"id": "end", "type": "NoOp"}},
            ],
            [
                "normal_workflow -> check_status",
                {
                    "check_status": {
                        "IF params.getFromStep('normal_workflow', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'":
                            "re_run -> end",
                        "OTHERWISE": "end",
                    }
                },
            ],
            {"source": "none", "predicate": "none"},
        )  # fmt: skip
        call = {"subworkflow": {"id": "call", "workflow_id": f"{name}.remediation", **given}}
        outer = self._one(name, [call], "call")
        return Written((inner, remediation, *outer.texts), name, "call")

    def _one(self, name: str, steps: list[dict[str, Any]], step: str) -> Written:
        captures = ["capture", "more"][: len(self.sources)]
        jobs = [
            {"job": {"id": each, "type": "IpCapture", "retry_policy": _AT_ONCE,
                     "ip_capture": {"source_tables": [source], "consumer": self.consumer}}}
            for each, source in zip(captures, self.sources, strict=True)
        ]  # fmt: skip
        commits = [
            {"job": {"id": f"commit_{each}", "type": "IpCommit", "retry_policy": _AT_ONCE,
                     "ip_commit": {"capture_step": each}}}
            for each in captures
        ]  # fmt: skip
        return Written((self._workflow(name, [*jobs, *steps, *commits]),), name, step)

    def _workflow(
        self, name: str, jobs: list[dict[str, Any]], dag: Any = "sequential", params: Mapping[str, str] | None = None
    ) -> str:
        strategy = {"run_strategy": "PARALLEL"} if self.is_parallel else {}
        text: str = yaml.safe_dump(
            {"Workflow": {"id": name, **strategy, **(params or {}), "jobs": jobs, "dag": dag}}, sort_keys=False
        )
        return text

    def _step(self, step_id: str, script: str) -> dict[str, Any]:
        block: dict[str, Any] = {"script": script}
        if self.form.is_idempotent:
            block["idempotent"] = True
        if self.form.is_atomic:
            block["atomic"] = True
        policy = {"error_retry_limit": self.retries, "platform_retry_limit": self.retries, "backoff": _SOON}
        return {"job": {"id": step_id, "type": "Spark", "retry_policy": policy, "spark": block}}

    def _script(self, edit: Edit, rows: str = "", predicate: str = "${capture.partition_filter}") -> str:
        rows = rows or f"({_ROWS.format(table='${capture.change_table}')})"
        if self.is_slow:
            rows = f"(SELECT * FROM {rows} WHERE {_SLOW})"
        replaced = {"<rows>": rows, "<filter>": predicate, "<source>": self.sources[0]}
        replaced |= {f"<{name}>": table for name, table in self.tables.items()}
        replaced |= {f"<name of {name}>": table.rpartition(".")[2] for name, table in self.tables.items()}
        replaced["<catalog>"] = self.sources[0].partition(".")[0]
        replaced["<namespace>"] = next(iter(self.tables.values())).rpartition(".")[0]
        statements = list(self.form.statements)
        if edit.is_swapped and self.form.is_swappable:
            statements[-2:] = reversed(statements[-2:])
        elif edit.is_swapped:
            statements.append("SELECT 1")
        if edit.wording:
            statements[-1] = f"{statements[-1]} {edit.wording}"
        texts = [*edit.in_front, *statements, *edit.at_end]
        for old, new in replaced.items():
            texts = [text.replace(old, new) for text in texts]
        return ";\n".join(texts)
