"""Workflows as the engine needs them: the graph of each flow, found once per version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dalsegno.model.runs import Graph
from dalsegno.model.step_files import StepFile
from dalsegno.model.workflow import Definition, ForeachStep, JobStep, Step, SubworkflowStep, WhileStep, Workflow
from dalsegno.spec.captures import committed_with_run, is_capture, is_commit, is_declared
from dalsegno.spec.step_types import records_work


@dataclass(frozen=True)
class Blueprint:
    """One version of a workflow."""

    definition: Definition
    version: int
    #: The files that its steps name.
    files: tuple[StepFile, ...] = ()

    @property
    def workflow(self) -> Workflow:
        return self.definition.workflow

    @cached_property
    def root(self) -> Graph:
        return Graph.of(self.workflow.steps)

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        return {step.id: step for step in self.workflow.all_steps()}

    @cached_property
    def file_of(self) -> Mapping[tuple[str, str], StepFile]:
        """The file that a field of a step names, by both."""
        return {(each.step_id, each.field): each for each in self.files}

    @cached_property
    def bodies(self) -> Mapping[str, Graph]:
        """What a loop repeats, by its step."""
        loops = (step for step in self.steps.values() if isinstance(step, ForeachStep | WhileStep))
        return {step.id: Graph.of(step.steps) for step in loops}

    @cached_property
    def loop_of(self) -> Mapping[str, str]:
        """The loop that a step is inside of."""
        loops = (step for step in self.steps.values() if isinstance(step, ForeachStep | WhileStep))
        return {inner.id: loop.id for loop in loops for inner in loop.steps}

    def outermost(self, step_id: str) -> str:
        """The step itself, or the loop around it that is in no other."""
        while step_id in self.loop_of:
            step_id = self.loop_of[step_id]
        return step_id

    @cached_property
    def captures(self) -> frozenset[str]:
        """The steps that capture what is new in a table."""
        return frozenset(step.id for step in self.steps.values() if is_capture(step))

    @cached_property
    def declared(self) -> frozenset[str]:
        """The steps that capture, write and commit a declared table themselves."""
        return frozenset(step.id for step in self.steps.values() if is_declared(step))

    @cached_property
    def calls_others(self) -> bool:
        return any(isinstance(step, SubworkflowStep) for step in self.steps.values())

    @cached_property
    def captures_and_commits(self) -> frozenset[str]:
        return self.captures | {step.id for step in self.steps.values() if is_commit(step)}

    @cached_property
    def steps_at_work(self) -> frozenset[str]:
        """The steps with SQL behind captures, as far as it is known: a loop or a called workflow may have some."""
        return frozenset(
            step.id for step in self.steps.values() if not isinstance(step, JobStep) or records_work(step.type)
        )

    @cached_property
    def committed_with_run(self) -> frozenset[str]:
        """Those of them whose checkpoint moves with the success of the run."""
        return committed_with_run(self.steps.values())

    @cached_property
    def ancestors(self) -> dict[tuple[str | None, str], set[str]]:
        """By loop and step, the steps before it; filled as they are needed."""
        return {}

    def graph(self, loop: str | None) -> Graph:
        """Of an iteration of this loop, or of the whole."""
        return self.bodies[loop] if loop else self.root


#: By workflow and version; a version never changes, so whoever has one may keep it.
Blueprints = Callable[[str, int], Blueprint]
