"""What a claimed step does next, by its kind. A worker keeps nothing: it looks, acts, and reports."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass

from dalsegno.engine.job_execution import JobExecution
from dalsegno.engine.jobs import StopFlags
from dalsegno.engine.log_context import working_on
from dalsegno.engine.loop_execution import ForeachExecution, WhileExecution
from dalsegno.engine.records import Claim, Report
from dalsegno.engine.step_execution import Note, StepExecution, WorkerContext
from dalsegno.engine.subworkflow_execution import SubworkflowExecution
from dalsegno.errors import DalsegnoError, PlatformError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.model.runs import LeaseLost, StepStatus
from dalsegno.model.workflow import ForeachStep, JobStep, StepDefinition, SubworkflowStep, WhileStep

log = logging.getLogger(__name__)

#: What the system would answer again, whenever and wherever the step is tried.
_HOPELESS = frozenset({errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL})

EXECUTIONS: dict[type[StepDefinition], type[StepExecution]] = {
    JobStep: JobExecution,
    ForeachStep: ForeachExecution,
    WhileStep: WhileExecution,
    SubworkflowStep: SubworkflowExecution,
}


@dataclass(frozen=True)
class Worker:
    """Runs claimed steps; any number of threads may share it."""

    context: WorkerContext

    def work(self, claim: Claim, stop_flags: StopFlags, note: Note) -> Report:
        """Do what there is to do, and say what happened."""
        with working_on(claim):
            return self._work(claim, stop_flags, note)

    def _work(self, claim: Claim, stop_flags: StopFlags, note: Note) -> Report:
        execution = EXECUTIONS[type(claim.step)](self.context, claim, stop_flags, note)
        try:
            if claim.state.status is StepStatus.WAITING_FOR_SIGNALS:
                return execution.look_for_signals()
            return execution.execute()
        except PlatformError as error:
            return execution.ended(Failed(FailureKind.PLATFORM, error.message, error.hint))
        except (OSError, MemoryError) as error:
            return self._failed_here(execution, error)
        except DalsegnoError as error:
            return execution.ended(Failed(FailureKind.FATAL, error.message, error.hint))
        except Exception as error:
            log.exception("step failed inside of dalsegno")
            return execution.ended(
                Failed(FailureKind.FATAL, f"dalsegno itself failed: {type(error).__name__}: {error}")
            )

    def _failed_here(self, execution: StepExecution, error: OSError | MemoryError) -> Report:
        """This machine failed, and no job runs: the step is for another node, or for us when the machine is well."""
        problem = self.context.jobs.folder.problem_now()
        if problem is not None:
            log.warning("the step is left to another node: %s", error)
            return execution.report(LeaseLost(execution.step.id, execution.state.fence))
        log.exception("the machine failed")
        kind = FailureKind.FATAL if isinstance(error, OSError) and error.errno in _HOPELESS else FailureKind.PLATFORM
        return execution.ended(
            Failed(kind, f"The machine that ran the step failed: {str(error) or type(error).__name__}.")
        )
