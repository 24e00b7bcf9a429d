"""Learning how long refreshes take."""

from __future__ import annotations

import random

import pytest

from dalsegno.model.refreshes import Cost
from dalsegno.plan.refresh_costs import MOST_SAMPLES, Coefficients, PastCost, fitted

MB = 1_000_000
REAL = Coefficients(fixed=0.8, per_byte_read=4e-9, per_byte_written=2e-8)


def sample(read: int, written: int, noise: float = 1.0) -> Cost:
    cost = Cost(read * MB, written * MB)
    return Cost(cost.bytes_read, cost.bytes_written, REAL.seconds(cost) * noise)


def test_nothing_is_known_without_samples() -> None:
    assert fitted([]) is None
    assert fitted([Cost(10, 10), Cost(0, 0, 3.0), Cost(5, 5, 0.0)]) is None


def test_one_full_refresh_already_tells_large_from_small() -> None:
    full = sample(3000, 500)
    found = fitted([full])
    assert found is not None
    assert found.seconds(full) == pytest.approx(full.seconds or 0)
    assert found.seconds(sample(30, 5)) < found.seconds(full) / 5


@pytest.mark.parametrize("seed", range(20))
def test_many_samples_tell_the_numbers(seed: int) -> None:
    chance = random.Random(seed)
    samples = [
        sample(chance.randrange(1, 4000), chance.randrange(1, 800), chance.uniform(0.93, 1.07)) for _ in range(20)
    ]
    # Spark had to start, or somebody else used the cluster.
    slow = [Cost(each.bytes_read, each.bytes_written, (each.seconds or 0) * 8) for each in samples[:2]]
    found = fitted([*slow, *samples])
    assert found is not None
    for asked in (sample(2000, 100), sample(100, 400), sample(3500, 700)):
        assert found.seconds(asked) == pytest.approx(asked.seconds or 0, rel=0.2)


@pytest.mark.parametrize("seed", range(50))
def test_no_coefficient_is_negative_and_the_fit_is_deterministic(seed: int) -> None:
    chance = random.Random(seed)
    samples = [
        Cost(chance.choice([0, 10 ** chance.randrange(12)]), 10 ** chance.randrange(9), chance.expovariate(0.1))
        for _ in range(chance.randrange(1, 6))
    ]
    found = fitted(samples)
    assert found is not None
    assert min(found.fixed, found.per_byte_read, found.per_byte_written) >= 0
    assert found == fitted(samples)


def test_old_samples_do_not_count() -> None:
    slower = [Cost(each.bytes_read, each.bytes_written, (each.seconds or 0) * 10) for each in [sample(50, 50)] * 100]
    new = [sample(100 * (1 + at % 7), 10 * (1 + at % 5)) for at in range(MOST_SAMPLES)]
    found = fitted([*new, *slower])
    assert found is not None
    assert found.seconds(new[0]) == pytest.approx(new[0].seconds or 0, rel=0.1)


def test_a_small_table_takes_its_time_for_other_reasons_than_its_bytes() -> None:
    found = fitted([Cost(4_000, 2_000, 3.0), Cost(9_000, 1_000, 1.2), Cost(4_000, 2_000, 4.0)])
    assert found is not None
    assert found.seconds(Cost(40_000, 20_000)) == pytest.approx(found.fixed, abs=0.1)


def test_each_strategy_has_a_factor_of_its_own() -> None:
    """One reads much that costs little, such as keys that a join leaves out."""
    past = [PastCost(read * MB, 0, REAL.seconds(Cost(read * MB, 0)), "full") for read in (1000, 1200, 3000, 3500)]
    quick = [PastCost(2 * each.bytes_read, 0, (each.seconds or 0) / 2, "touched keys") for each in past[:3]]
    found = fitted([*past, *quick])
    assert found is not None
    cost = Cost(2000 * MB, 0)
    assert found.seconds(cost, "touched keys") < 0.5 * found.seconds(cost, "full")
    assert found.seconds(cost, "never taken") == found.seconds(cost)
    assert {strategy for strategy, _ in found.factors} == {"full", "touched keys"}


def test_a_slow_refresh_of_few_bytes_says_nothing_of_its_strategy() -> None:
    past = [PastCost(4_000, 2_000, 1.5, "full"), PastCost(9_000, 1_000, 6.0, "touched keys")]
    found = fitted(past)
    assert found is not None
    assert found.factors == {("full", ""): 1.0, ("touched keys", ""): 1.0}


def test_deletes_are_learned_apart_from_appends() -> None:
    past = [PastCost(read * MB, 0, REAL.seconds(Cost(read * MB, 0)), "full") for read in (1000, 1200, 3000)]
    quick = PastCost(100 * MB, 0, 1.2, "delta", "appended")
    slow = PastCost(100 * MB, 0, 9.0, "delta", "any")
    found = fitted([slow, quick, *past])
    assert found is not None
    cost = Cost(100 * MB, 0)
    assert found.seconds(cost, "delta", "any") > 5
    assert found.seconds(cost, "delta", "appended") < 2
    # What was not tried is expected to be like what was, for the same kind of change.
    assert found.seconds(cost, "touched keys", "any") > 5
    assert found.seconds(cost, "touched keys", "appended") < 2
    assert found.factor("touched keys") is None


def test_a_full_refresh_is_tried_again_where_an_increment_takes_nearly_as_long() -> None:
    """The first run was slow for reasons of its own, and nobody would ever know."""
    first, slow = PastCost(570 * MB, 800, 7.0, "full"), PastCost(100 * MB, 800, 6.0, "delta", "any")
    found = fitted([slow, first])
    assert found is not None
    assert found.seconds(first, "full", "any") < found.seconds(slow, "delta", "any")
    quick = fitted([PastCost(100 * MB, 800, 2.0, "delta", "any"), first])
    assert quick is not None
    assert quick.seconds(slow, "delta", "any") < quick.seconds(first, "full", "any")
    known = fitted([PastCost(570 * MB, 800, 6.8, "full", "any"), slow, first])
    assert known is not None
    assert known.seconds(slow, "delta", "any") < known.seconds(first, "full", "any")


def test_a_strategy_that_was_slow_once_is_tried_again() -> None:
    full = PastCost(1000 * MB, 0, REAL.seconds(Cost(1000 * MB, 0)), "full")
    slow = PastCost(100 * MB, 0, 20.0, "delta", "any")
    expected = []
    for later in (0, 5, 10, 20, 29):
        found = fitted([*[full] * later, slow, *[full] * 3])
        assert found is not None
        expected.append(found.seconds(slow, "delta", "any"))
    assert expected == sorted(expected, reverse=True)
    assert expected[0] > (full.seconds or 0) > expected[-1]
