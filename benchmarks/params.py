"""What the parameters of a step cost: merging its definitions, and evaluating them in one iteration of a loop.

Processor time, the best of several rounds: a busy machine makes rounds slower, never faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from dalsegno.model.params import Param, ParamDefinition, ParamDefinitions, ParamType
from dalsegno.spec.params.context import Context
from dalsegno.spec.params.evaluation import Scope
from dalsegno.spec.params.facts import NothingThere, RunFacts, StepFacts
from dalsegno.spec.params.layers import step_definitions
from dalsegno.spec.params.loops import iteration_count, iteration_params
from dalsegno.spec.params.sel import Sel

ROUNDS = 5
NOW = datetime(2024, 1, 31, tzinfo=UTC)
RUN = {"RUN_TS": Param(ParamType.LONG, 1706704200000)} | {f"w{n}": Param(ParamType.STRING, "x") for n in range(20)}
#: That of Maestro's sample-large-foreach-wf: 1,098 iterations.
LOOP = Param(ParamType.MAP, {"i": list(range(20200101, 20200467)), "j": ["a", "b", "c"]})


def literals(count: int) -> ParamDefinitions:
    return {f"p{n}": ParamDefinition(ParamType.STRING, f"${{i}} of ${{RUN_DATE}} {n}") for n in range(count)}


def expressions(count: int) -> ParamDefinitions:
    return {f"p{n}": ParamDefinition(ParamType.STRING, expression="i + j;") for n in range(count)}


def all_iterations(definitions: ParamDefinitions) -> None:
    """What an engine does before each step of each iteration."""
    for index in range(iteration_count(LOOP)):
        run = Scope({}, Context(RunFacts("wf", 1, 1, NOW), NOW, Sel(), NothingThere(), str), RUN)
        iteration = Scope({}, run.context, iteration_params(LOOP, index), run)
        Scope(step_definitions(definitions), run.context, {}, iteration, StepFacts("job2")).evaluate()


def microseconds(definitions: ParamDefinitions) -> float:
    """For one step, in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        all_iterations(definitions)
        best = min(best, time.process_time() - began)
    return best / iteration_count(LOOP) * 1e6


def main() -> None:
    print(f"{'parameters':>10}  {'texts, µs':>10}  {'expressions, µs':>15}")
    kinds: tuple[Callable[[int], ParamDefinitions], ...] = (literals, expressions)
    for count in (0, 3, 20):
        texts, of_sel = (microseconds(kind(count)) for kind in kinds)
        print(f"{count:>10}  {texts:>10.0f}  {of_sel:>15.0f}")


if __name__ == "__main__":
    main()
