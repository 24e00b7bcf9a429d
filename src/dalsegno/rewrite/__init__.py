"""Rewrite a plain full-refresh SELECT into incremental SQL.

The package is pure. Importing it takes a third of a second, so import it when you need it. Callers pass the query,
the tables' columns and partitions, and what changed. They get SQL back:

- ``analyse`` parses a query and finds its sources, its output columns, and every obstacle with its place in the text.
- ``strategies_for`` lists the strategies that are correct for a kind of change, and says why the others are not.
- ``Strategy.statements`` writes the SQL of one run. Some strategies have a ``probe``, a query to run first.

The user's text stays as it is. Only the names of tables in it are replaced, by subqueries. Whatever is not proven is
not incremental: then only ``full`` is left.

Two facts carry the correctness.

**1. Replacing all rows of the touched keys is correct for any key.** Let k be some output columns, and K a set of
their values. Suppose K contains the key of every row that the result gained or lost. Then delete the target's rows
with k in K, and insert the rows of the new result with k in K: the target equals the new result. It does not matter
how the query works. Restricting the sources to rows with k in K is only an optimisation. It is valid where k passes
through unchanged and is in every GROUP BY and PARTITION BY on the way. A filter on output columns commutes with
DISTINCT, UNION and inner joins, and with the left side of outer, semi and anti joins. An equality in a join carries
the filter to the other side.

**2. K is the union of what each changed source touches.** Replace the reads of the query one after the other, each by
its new state. A step changes only result rows that depend on the changed rows of that one read. If k passes through
from this read, K gets the values of k in its changed rows, both before and after images. Otherwise K gets the values
of k in rows that join with the changed rows. Tables on the path of that join come earlier in the order, so their new
state is the right one to read; rows that they lost are found by their own step. A key from the nullable side of an
outer join is refused: if the row is missing, no row shows the key.

A query that is *linear* in a read (``linear``) needs no key: over the union of two inputs it returns the union of
both results. So its change is the query over the added rows, minus the query over the removed rows (``terms``).
Append strategies insert this change. Delta strategies add it to the aggregates that the target already has.

============================  =================================================================  =======================
strategy                      correct if                                                         statement
============================  =================================================================  =======================
append                        rows were only appended, and the query is linear in them           INSERT INTO
append new joins              the same for several tables, and a probe finds no new row that     INSERT INTO
                              joins an old row of another table
append new keys               rows were only appended, the query keeps one row per key, and a    INSERT INTO
                              probe finds no known key that gets another row
delta, delta of new joins     the query ends in decomposable aggregates over a linear part       REPLACE WHERE or MERGE
delta of touched keys         the query ends in sums and counts over rows that have a key        REPLACE WHERE or MERGE
touched partitions            a partition column of source and target passes through             REPLACE WHERE
touched keys                  an output column is a key                                          MERGE with DELETE
full                          always                                                             REPLACE WHERE true
============================  =================================================================  =======================

Modules: ``reading`` builds the operator tree (``relations``, ``scopes``, ``selects``, ``subqueries``). ``keys`` and
``linear`` prove properties of it. ``touching``, ``partitions``, ``measures``, ``delta``, ``deduplication`` and
``together`` turn them into strategies (``attempts``), and ``writing`` writes the SQL. ``states`` splits off the
aggregates of a query into a companion table, for targets that do not store what a delta needs.

What authors state about their data (``facts``, ``stated``) makes more columns pass through windows (``dependencies``).
It must hold before and after a run, so ``checks`` are queries to run first. ``views`` replaces views by their queries;
``leading`` finds the table that a query is about.
"""

from dalsegno.rewrite.analysis import Analysis, Lookback, analyse, expanded, tables_in
from dalsegno.rewrite.relations import Obstacle, Verdict
from dalsegno.rewrite.states import States, states_of
from dalsegno.rewrite.strategies import strategies_for
from dalsegno.rewrite.strategy import Changed, Options, Strategy, StrategyName
from dalsegno.rewrite.tables import Change, PartitionField, Reading, Table, with_columns

__all__ = [
    "Analysis",
    "Change",
    "Changed",
    "Lookback",
    "Obstacle",
    "Options",
    "PartitionField",
    "Reading",
    "States",
    "Strategy",
    "StrategyName",
    "Table",
    "Verdict",
    "analyse",
    "expanded",
    "states_of",
    "strategies_for",
    "tables_in",
    "with_columns",
]
