"""Which limits a step falls under."""

from __future__ import annotations

from dalsegno.engine.blueprints import Blueprint
from dalsegno.model.runs import StepState, StepStatus
from dalsegno.model.workflow import JobStep, Step
from dalsegno.spec.step_types import step_type


def may_hold_permits(step: Step) -> bool:
    known = step_type(step.type) if isinstance(step, JobStep) else None
    return isinstance(step, JobStep) and (known is None or known.has_job)


def permit_names(blueprint: Blueprint, run_id: str, state: StepState) -> dict[str, int | None]:
    """The permits that a step needs to run, each with how many there are; None: if somebody set a limit at all."""
    step = blueprint.steps[state.step_id]
    is_to_wait = state.status is StepStatus.WAITING_FOR_SIGNALS
    if state.ending is not None or is_to_wait or not may_hold_permits(step):
        return {}
    workflow = blueprint.workflow
    names: dict[str, int | None] = {f"workflow {workflow.id}": blueprint.definition.properties.step_concurrency}
    if workflow.instance_step_concurrency is not None:
        names[f"run {run_id}"] = workflow.instance_step_concurrency
    return names | {f"tag {tag.name}": None for tag in step.tags}
