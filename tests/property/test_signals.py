"""Every signal is part of one join at most, and what is complete is joined, however signals come."""

from __future__ import annotations

from collections import Counter
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from dalsegno.model.params import ParamDefinition, ParamType
from dalsegno.model.signals import Match, Signal, Wanted
from dalsegno.model.workflow import Operator, SignalDependency, SignalMatch
from dalsegno.plan.signals import fits, is_met, newest
from dalsegno.triggers.signal_triggers.model import SignalTrigger
from dalsegno.triggers.signal_triggers.plan import Joining, group_of, key_of_join, named_triggers, to_join

NAMES = ["a", "b", "c"]
VALUES = st.one_of(st.integers(0, 2), st.sampled_from(["0", "1", "x"]))


@st.composite
def joinings(draw: st.DrawFn) -> Joining:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    matches = st.builds(Match, st.sampled_from(Operator), st.integers(0, 2))
    wanted = {name: Wanted(name, draw(st.dictionaries(st.just("level"), matches, max_size=1))) for name in names}
    keys = draw(st.integers(0, 2))
    return Joining(wanted, {name: tuple(f"{name}{number}" for number in range(keys)) for name in names})


@st.composite
def announcements(draw: st.DrawFn) -> list[tuple[str, dict[str, str | int]]]:
    def params(name: str) -> st.SearchStrategy[dict[str, str | int]]:
        return st.fixed_dictionaries({}, optional={key: VALUES for key in ("level", f"{name}0", f"{name}1")})

    names = draw(st.lists(st.sampled_from([*NAMES, "other"]), max_size=30))
    return [(name, draw(params(name))) for name in names]


@settings(deadline=None, max_examples=300)
@given(joinings(), announcements(), st.data())
def test_every_complete_join_begins_one_run(
    joining: Joining, announced: list[tuple[str, dict[str, str | int]]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(announced))
    numbers = count(1)
    waiting: list[Signal] = []
    used: list[Signal] = []
    keys: list[str] = []
    for name, params in order:
        waiting.append(Signal(next(numbers), name, params))
        if data.draw(st.booleans()):
            # Somebody looks; or the next signal is quicker.
            waiting = look(joining, waiting, used, keys)
    waiting = look(joining, waiting, used, keys)
    assert to_join(joining, waiting).joins == ()
    assert max(Counter(signal.id for signal in used).values(), default=1) == 1
    assert len(set(keys)) == len(keys)
    assert len(keys) == expected(joining, announced)


def look(joining: Joining, waiting: list[Signal], used: list[Signal], keys: list[str]) -> list[Signal]:
    """What still waits afterwards."""
    decided = to_join(joining, waiting)
    dealt_with = list(decided.useless)
    for join in decided.joins:
        assert [signal.name for signal in join.signals] == list(joining.wanted)
        assert len({group_of(joining, signal) for signal in join.signals}) == 1
        assert all(fits(signal, joining.wanted[signal.name]) for signal in join.signals)
        keys.append(key_of_join("w", "t", join))
        used += join.signals
        dealt_with += join.signals
    assert all(signal.name not in joining.wanted or group_of(joining, signal) is None for signal in decided.useless)
    return [signal for signal in waiting if signal not in dealt_with]


def expected(joining: Joining, announced: list[tuple[str, dict[str, str | int]]]) -> int:
    """By counting: of each value of the join keys, as many as there are of the rarest signal."""
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for name, params in announced:
        keys = joining.join_keys.get(name, ())
        is_wanted = name in joining.wanted and fits(Signal(1, name, params), joining.wanted[name])
        if is_wanted and all(key in params for key in keys):
            values = tuple(str(params[key]) for key in keys)
            counts.setdefault(values, Counter())[name] += 1
    return sum(min(found[name] for name in joining.wanted) for found in counts.values())


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.sampled_from(Operator))
def test_numbers_and_their_texts_are_compared_as_the_match_says(found: int, wanted: int, operator: Operator) -> None:
    as_numbers = is_met(Match(operator, wanted), found)
    assert is_met(Match(operator, wanted), str(found)) == as_numbers
    as_texts = is_met(Match(operator, str(wanted)), str(found))
    assert is_met(Match(operator, str(wanted)), found) == as_texts
    if operator is Operator.EQUAL:
        assert as_numbers == as_texts == (found == wanted)


def test_operators() -> None:
    met = {operator: [value for value in (1, 2, 3) if is_met(Match(operator, 2), value)] for operator in Operator}
    assert met == {
        Operator.EQUAL: [2],
        Operator.GREATER: [3],
        Operator.GREATER_OR_EQUAL: [2, 3],
        Operator.LESS: [1],
        Operator.LESS_OR_EQUAL: [1, 2],
    }
    assert is_met(Match(Operator.GREATER, "b"), "c")
    assert not is_met(Match(Operator.GREATER, 2), "three")
    assert not is_met(Match(Operator.EQUAL, 2), "2.0")


def test_the_newest_that_will_do() -> None:
    wanted = Wanted("a", {"day": Match(Operator.LESS, 3)})
    found = [Signal(1, "a", {"day": 1}), Signal(2, "a", {"day": 2}), Signal(3, "a", {"day": 3}), Signal(4, "b", {})]
    assert newest(found, wanted) == found[1]
    assert newest(found[2:], wanted) is None


def trigger(value: str | int = "DE", condition: str | None = None) -> SignalTrigger:
    kind = ParamType.STRING if isinstance(value, str) else ParamType.LONG
    match = {"country": SignalMatch(ParamDefinition(kind, value))}
    definitions = {"plays/complete": SignalDependency("plays/complete", match), "prices": SignalDependency("prices")}
    keys = {"plays/complete": ("day",), "prices": ("date",)}
    return SignalTrigger(definitions, keys, condition=condition)


def test_a_trigger_is_called_by_what_it_waits_for() -> None:
    [name] = named_triggers([trigger()])
    assert name == "plays/complete (country = 'DE', day) + prices (date)"
    assert list(named_triggers([trigger(condition="1 < 2")])) == [name]
    assert list(named_triggers([trigger(), trigger(condition="1 < 2")])) == [name, f"{name} #2"]
    assert len(named_triggers([trigger("5"), trigger(5)])) == 2
    long_ones = named_triggers([trigger("x" * 1000), trigger("x" * 1001)])
    assert len(long_ones) == 2
    assert all(len(each) < 400 for each in long_ones)
