"""What a claimed step does next, by its kind. A worker keeps nothing: it looks, acts, and reports."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dalsegno.engine.about import working_on
from dalsegno.engine.job_turn import JobTurn
from dalsegno.engine.jobs import Signals
from dalsegno.engine.loop_turns import ForeachTurn, WhileTurn
from dalsegno.engine.records import Claim, Report
from dalsegno.engine.subworkflow_turn import SubworkflowTurn
from dalsegno.engine.turn import Means, Note, Turn
from dalsegno.errors import DalsegnoError, PlatformError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.model.runs import LeaseLost, StepStatus
from dalsegno.model.workflow import ForeachStep, JobStep, StepDefinition, SubworkflowStep, WhileStep

log = logging.getLogger(__name__)

#: What the system would answer again, whenever and wherever the step is tried.
_HOPELESS = frozenset({errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL})

TURNS: dict[type[StepDefinition], type[Turn]] = {
    JobStep: JobTurn,
    ForeachStep: ForeachTurn,
    WhileStep: WhileTurn,
    SubworkflowStep: SubworkflowTurn,
}


@dataclass(frozen=True)
class Worker:
    """Runs claimed steps; any number of threads may share it."""

    means: Means
    #: Removes what a committed capture leaves behind.
    tidy_up: Callable[[str], None]

    def work(self, claim: Claim, signals: Signals, note: Note) -> Report:
        """Do what there is to do, and say what happened."""
        with working_on(claim):
            return self._work(claim, signals, note)

    def _work(self, claim: Claim, signals: Signals, note: Note) -> Report:
        turn = TURNS[type(claim.step)](self.means, claim, signals, note)
        try:
            if claim.state.status is StepStatus.WAITING_FOR_SIGNALS:
                return turn.look_for_signals()
            return turn.take()
        except PlatformError as error:
            return turn.ended(Failed(FailureKind.PLATFORM, error.message, error.hint))
        except (OSError, MemoryError) as error:
            return self._failed_here(turn, error)
        except DalsegnoError as error:
            return turn.ended(Failed(FailureKind.FATAL, error.message, error.hint))
        except Exception as error:
            log.exception("step failed inside of dalsegno")
            return turn.ended(Failed(FailureKind.FATAL, f"dalsegno itself failed: {type(error).__name__}: {error}"))

    def _failed_here(self, turn: Turn, error: OSError | MemoryError) -> Report:
        """This machine failed, and no job runs: the step is for another node, or for us when the machine is well."""
        problem = self.means.jobs.folder.problem_now()
        if problem is not None:
            log.warning("the step is left to another node: %s", error)
            return turn.report(LeaseLost(turn.step.id, turn.state.fence))
        log.exception("the machine failed")
        kind = FailureKind.FATAL if isinstance(error, OSError) and error.errno in _HOPELESS else FailureKind.PLATFORM
        return turn.ended(Failed(kind, f"The machine that ran the step failed: {str(error) or type(error).__name__}."))
