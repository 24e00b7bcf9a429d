"""How long a refresh takes, learned from those before: ``seconds = a + b · bytes read + c · bytes written``.

The first refresh of a table is a full one, and one sample cannot tell three numbers apart. So each fit leans towards a
guess: a small fixed part, and writing a byte takes twice as long as reading one, but no more than any machine needs for
it, because a refresh of few bytes takes its time for other reasons. Every further sample counts more than the guess
does. Errors are relative, since short runs are to be predicted as well as long ones, and a run that was slow for other
reasons counts less. Bytes tell little of joins and groupings, so each strategy also has a factor for each kind of
change, by which its own refreshes took longer or shorter than that. It fades with time: a strategy that was slow once
is tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from dalsegno.model.refreshes import Cost

#: A table grows and a cluster changes, so only the newest refreshes count.
MOST_SAMPLES = 30
_FIXED_SECONDS = 1.0
_WRITING_FACTOR = 2.0
#: Of reading: 5 MB/s. No machine is slower, so what takes longer is not for the bytes.
_MOST_PER_BYTE = 2e-7
#: How much the guess counts, compared with one sample.
_GUESS_WEIGHT = 0.05
#: Beyond this relative error, a sample counts less and less.
_OUTLIER = 0.3
_ROUNDS = 5
#: How much a strategy counts whose bytes tell the truth, compared with one refresh by it; and the farthest from it.
_FACTOR_WEIGHT, _MOST_FACTOR = 0.1, 8.0
#: The strategy of the first run, and how much of its time the next one of that kind takes: Spark had just started, and
#: tables had to be made. Without this, a full refresh would never be tried again.
_FIRST, _AGAIN = "full", 0.6
#: How much of its weight a refresh keeps with each later one.
_KEPT = 0.92
#: How long a refresh of fewer bytes takes has other reasons than its strategy.
_FEW_BYTES = 1_000_000
#: What stands for every kind of change.
ANY_CHANGE = ""

_Vector = list[float]


@dataclass(frozen=True)
class PastCost(Cost):
    """Of a refresh by a known strategy."""

    strategy: str = ""
    #: The kind of change; ``ANY_CHANGE``: not known, or of no matter.
    changed: str = ANY_CHANGE


@dataclass(frozen=True)
class Coefficients:
    """None of them is negative."""

    fixed: float
    per_byte_read: float
    per_byte_written: float
    #: Strategies that were taken before, and for which kind of change → how long they take, compared with the rest.
    factors: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def seconds(self, cost: Cost, strategy: str = "", changed: str = ANY_CHANGE) -> float:
        by_bytes = self.per_byte_read * cost.bytes_read + self.per_byte_written * cost.bytes_written
        return (self.fixed + by_bytes) * (self.factor(strategy, changed) or 1.0)

    def factor(self, strategy: str, changed: str = ANY_CHANGE) -> float | None:
        """None: neither the strategy nor another one like it was ever taken for such a change."""
        own = self.factors.get((strategy, changed), self.factors.get((strategy, ANY_CHANGE)))
        if own is not None or strategy == _FIRST or not changed:
            return own
        # If all that were tried were slow, this one is expected to be no better.
        others = [factor for (name, kind), factor in self.factors.items() if name != _FIRST and kind == changed]
        return max(min(others), 1.0) if others else None


def fitted(costs: Iterable[Cost]) -> Coefficients | None:
    """From the newest refresh to older ones; None if no sample has both bytes and seconds."""
    samples = [each for each in costs if each.seconds and each.bytes_read + each.bytes_written > 0][:MOST_SAMPLES]
    guess = _guess(samples)
    if guess is None:
        return None
    found = guess if len(samples) == 1 else _fitted(samples, guess)
    return replace(found, factors=_factors(samples, found))


def _factors(samples: Sequence[Cost], found: Coefficients) -> dict[tuple[str, str], float]:
    ratios: dict[tuple[str, str], list[float]] = {}
    weights: dict[tuple[str, str], float] = {}
    for age, each in enumerate(samples):
        if isinstance(each, PastCost) and each.seconds:
            key = each.strategy, each.changed
            known = ratios.setdefault(key, [])
            if each.bytes_read + each.bytes_written >= _FEW_BYTES:
                ratio = each.seconds / max(found.seconds(each), 1e-9)
                known.append(min(max(ratio, 1 / _MOST_FACTOR), _MOST_FACTOR))
                weights[key] = weights.get(key, 0.0) + _KEPT**age
    # The median, so that one slow run among many does not count.
    factors = {
        key: _median(each) ** (weights[key] / (weights[key] + _FACTOR_WEIGHT)) if each else 1.0
        for key, each in ratios.items()
    }
    is_alone = sum(len(each) for (strategy, _), each in ratios.items() if strategy == _FIRST) == 1
    return {key: factor * (_AGAIN if is_alone and key[0] == _FIRST else 1) for key, factor in factors.items()}


def _fitted(samples: Sequence[Cost], guess: Coefficients) -> Coefficients:
    scales = [guess.fixed, guess.per_byte_read, guess.per_byte_written]
    rows = [[scales[0], scales[1] * each.bytes_read, scales[2] * each.bytes_written] for each in samples]
    seconds = [each.seconds or 0.0 for each in samples]
    shares = [[part / took for part in row] for row, took in zip(rows, seconds, strict=True)]
    weights = [1.0] * len(samples)
    found = [1.0, 1.0, 1.0]
    for _ in range(_ROUNDS):
        found = _least_squares(shares, weights)
        errors = [abs(sum(x * part for x, part in zip(found, row, strict=True)) - 1) for row in shares]
        weights = [1.0 if error <= _OUTLIER else _OUTLIER / error for error in errors]
    fixed, reading, writing = (x * scale for x, scale in zip(found, scales, strict=True))
    return Coefficients(fixed, min(reading, _MOST_PER_BYTE), min(writing, _WRITING_FACTOR * _MOST_PER_BYTE))


def _guess(samples: Sequence[Cost]) -> Coefficients | None:
    if not samples:
        return None
    seconds = [each.seconds or 0.0 for each in samples]
    fixed = min(_FIXED_SECONDS, min(seconds) / 2)
    units = [each.bytes_read + _WRITING_FACTOR * each.bytes_written for each in samples]
    rate = min(_median([(took - fixed) / unit for took, unit in zip(seconds, units, strict=True)]), _MOST_PER_BYTE)
    fixed = max(fixed, _median([took - rate * unit for took, unit in zip(seconds, units, strict=True)]))
    return Coefficients(fixed, rate, _WRITING_FACTOR * rate)


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _least_squares(rows: Sequence[Sequence[float]], weights: Sequence[float]) -> _Vector:
    """The x, none of it negative, for which ``rows · x`` is nearest to 1, leaning towards x = 1."""
    best: tuple[float, _Vector] | None = None
    for size in (3, 2, 1):
        for chosen in combinations(range(3), size):
            matrix = [
                [
                    sum(w * row[i] * row[j] for w, row in zip(weights, rows, strict=True)) + (i == j) * _GUESS_WEIGHT
                    for j in chosen
                ]
                for i in chosen
            ]
            right = [sum(w * row[i] for w, row in zip(weights, rows, strict=True)) + _GUESS_WEIGHT for i in chosen]
            solved = dict(zip(chosen, _solved(matrix, right), strict=True))
            x = [solved.get(at, 0.0) for at in range(3)]
            if min(x) >= 0:
                error = sum(
                    w * (sum(a * b for a, b in zip(x, row, strict=True)) - 1) ** 2
                    for w, row in zip(weights, rows, strict=True)
                ) + _GUESS_WEIGHT * sum((each - 1) ** 2 for each in x)
                if best is None or error < best[0]:
                    best = error, x
    return best[1] if best else [1.0, 1.0, 1.0]


def _solved(matrix: list[_Vector], right: _Vector) -> _Vector:
    """By elimination; the matrix is positive definite, because the guess counts in every direction."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(size):
        pivot = max(range(at, size), key=lambda each: abs(rows[each][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for other in range(size):
            if other != at:
                factor = rows[other][at] / rows[at][at]
                rows[other] = [one - factor * two for one, two in zip(rows[other], rows[at], strict=True)]
    return [rows[at][size] / rows[at][at] for at in range(size)]
