"""What the author of a table states, and of which source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dalsegno.errors import UserError
from dalsegno.hints import did_you_mean
from dalsegno.rewrite.facts import Fact, fact_of
from dalsegno.rewrite.tables import Table


def stated_facts(texts: Iterable[str], sources: Sequence[Table]) -> tuple[Fact, ...]:
    """The facts, each with the full name of its source and its columns as that writes them."""
    return tuple(dict.fromkeys(_placed(fact_of(text), sources) for text in texts))


def with_facts(sources: Iterable[Table], facts: Iterable[Fact]) -> list[Table]:
    """The sources, and what is known of them."""
    known = list(facts)
    return [replace(each, facts=tuple(fact for fact in known if fact.table == each.name)) for each in sources]


def _placed(fact: Fact, sources: Sequence[Table]) -> Fact:
    if not fact.is_about_a_table:
        return fact
    columns = [*fact.columns, *fact.determined]
    named = [each for each in sources if fact.table is None or _is_called(each, fact.table)]
    if not named:
        known = [str(each) for each in sources]
        raise UserError(
            f"The fact {str(fact)!r} is about a table that the query does not read.",
            hint=did_you_mean(".".join(fact.table or ()), known),
        )
    having = [each for each in named if all(column.lower() in each.by_lower_name for column in columns)]
    if len(having) != 1:
        found = ", ".join(map(str, having)) or "none"
        raise UserError(
            f"The fact {str(fact)!r} must be about one source that has all of its columns, found {found}.",
            hint=f"Name the source: {fact.statement()} in {having[0] if having else sources[0]}",
        )
    written = having[0].by_lower_name
    return replace(
        fact,
        columns=tuple(written[column.lower()] for column in fact.columns),
        determined=tuple(written[column.lower()] for column in fact.determined),
        table=having[0].name,
    )


def _is_called(table: Table, name: Sequence[str]) -> bool:
    parts = [part.lower() for part in table.name]
    return parts[-len(name) :] == [part.lower() for part in name]
