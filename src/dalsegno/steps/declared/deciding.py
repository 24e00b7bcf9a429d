"""Which strategy a run takes: the cheapest of those that are right, by what earlier refreshes cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dalsegno.model.refreshes import Considered, Cost
from dalsegno.plan.refresh_costs import ANY_CHANGE, Coefficients
from dalsegno.rewrite.strategy import Strategy, StrategyName

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000
#: No estimate is better than this.
_ABOUT, _ABOUT_SECONDS = 1.1, 0.5
#: How much more than a full refresh a strategy may be expected to cost the first time: bytes tell little of joins and
#: groupings, which it does for fewer rows, and nobody would ever know.
_DOUBT = 2.0

#: Whether a strategy is right for the rows of this run, which its probe tells.
Agrees = Callable[[Strategy], bool]


@dataclass(frozen=True)
class Costs:
    """What each strategy that is possible would cost now."""

    by_strategy: Mapping[StrategyName, Cost]
    #: The strategies that earlier refreshes took.
    tried: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, found: Mapping[StrategyName, Cost], coefficients: Coefficients | None, changed: str = ANY_CHANGE
    ) -> Costs:
        """``coefficients``: None if no refresh has shown them."""
        if coefficients is None:
            return cls(found)
        costs = {name: replace(cost, seconds=coefficients.seconds(cost, name, changed)) for name, cost in found.items()}
        return cls(costs, frozenset(name for name in found if coefficients.factor(name, changed) is not None))

    def get(self, name: StrategyName) -> Cost | None:
        return self.by_strategy.get(name)

    def ordered(self, strategies: Sequence[Strategy]) -> list[Strategy]:
        """The cheapest first. In the order of the rewriter, which has ``full`` last, where they cost about the same."""
        seconds = {each.name: self._seconds(each.name) for each in strategies}
        others = [each.name for each in strategies if each.name is not StrategyName.FULL]
        if others and StrategyName.FULL in seconds and min(others, key=seconds.__getitem__) not in self.tried:
            seconds[StrategyName.FULL] *= _DOUBT
        left, found = list(strategies), []
        while left:
            least = min(seconds[each.name] for each in left)
            about = max(least * _ABOUT, least + _ABOUT_SECONDS)
            found.append(next(each for each in left if seconds[each.name] <= about))
            left.remove(found[-1])
        return found

    def _seconds(self, name: StrategyName) -> float:
        """0 where no refresh has shown what bytes cost: then the order of the rewriter counts alone."""
        cost = self.by_strategy.get(name)
        return 0.0 if cost is None or cost.seconds is None else cost.seconds

    def considered(self, known: Sequence[Strategy]) -> tuple[Considered, ...]:
        return tuple(Considered(each.name.value, each.is_possible, each.why, self.get(each.name)) for each in known)


def cheapest(usable: Sequence[Strategy], costs: Costs, agrees: Agrees, *, may_be_full: bool) -> Strategy | None:
    """The cheapest strategy that is right for this run, with what it costs in its ``why``; None if there is none.

    A full refresh is taken because it is cheaper; that nothing else is right is for the caller to say.
    """
    ordered = costs.ordered(usable)
    for at, each in enumerate(ordered):
        if each.name is not StrategyName.FULL:
            if agrees(each):
                return replace(each, why=_with_costs(each, costs))
            continue
        if may_be_full and at < len(ordered) - 1:
            return replace(each, why=_cheaper(each, ordered[at + 1], costs))
    return None


def _with_costs(chosen: Strategy, costs: Costs) -> str:
    cost, full = costs.get(chosen.name), costs.get(StrategyName.FULL)
    if cost is None or full is None:
        return chosen.why
    return f"{chosen.why} It {_reads(cost)}; full {_would_read(full)}."


def _cheaper(full: Strategy, other: Strategy, costs: Costs) -> str:
    ours, theirs = costs.get(full.name), costs.get(other.name)
    if ours is None or theirs is None:
        return full.why
    return f"A full refresh is expected to be cheaper: it {_reads(ours)}; {other.name} {_would_read(theirs)}."


def _reads(cost: Cost) -> str:
    return f"reads {said_bytes(cost.bytes_read)} and writes {said_bytes(cost.bytes_written)}{_seconds(cost)}"


def _would_read(cost: Cost) -> str:
    return f"would read {said_bytes(cost.bytes_read)} and write {said_bytes(cost.bytes_written)}{_seconds(cost)}"


def _seconds(cost: Cost) -> str:
    return "" if cost.seconds is None else f" (about {cost.seconds:.1f} s)"


def said_bytes(number: float) -> str:
    for unit in _UNITS:
        if number < _STEP or unit == _UNITS[-1]:
            break
        number /= _STEP
    return f"{number:.0f} {unit}" if unit == _UNITS[0] else f"{number:.1f} {unit}"
