"""Declared tables when they are pushed: their sources, ``SELECT *``, their order, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dalsegno import Lake, Settings
from dalsegno.errors import InvalidWorkflow
from dalsegno.operations.facade import Operations
from dalsegno.rewrite.strategy import StrategyName
from dalsegno.settings import CatalogSettings
from dalsegno.spec.step_types import STEP_TYPES
from dalsegno.steps.declared.params import STRATEGIES
from tests.callers import admin


@pytest.fixture
def operations(tmp_path: Path) -> Iterator[Operations]:
    place = CatalogSettings("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    settings = Settings(root=tmp_path, store=f"sqlite:///{tmp_path}/store.db", catalogs={"lake": place})
    with Lake.open(settings) as lake:
        tables = lake.catalog("lake").pyiceberg
        tables.create_namespace("db")
        tables.create_table("db.plays", pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    with Operations(None, settings, admin()) as opened:
        yield opened


def workflow(**queries: str) -> str:
    jobs = [
        {"job": {"id": name, "type": "Incremental", "incremental": {"target": f"lake.db.{name}", "query": query}}}
        for name, query in queries.items()
    ]
    return json.dumps({"Workflow": {"id": "w", "jobs": jobs}})


def steps(operations: Operations) -> dict[str, Any]:
    stored = json.loads(operations.workflows.definition("w"))
    return {each["step"]["id"]: each["step"] for each in stored["workflow"]["steps"]}


def block(step: dict[str, Any]) -> dict[str, Any]:
    return {name: each["value"] for name, each in step["params"]["incremental"]["value"].items()}


def test_sources_are_found(operations: Operations) -> None:
    operations.workflows.push(
        workflow(a="SELECT p.id FROM db.plays p JOIN (SELECT * FROM lake.db.`odd name`) o USING (id)")
    )
    found = block(steps(operations)["a"])
    assert found["sources"] == ["lake.db.plays", "lake.db.odd name"]
    # The checkpoint is the target's, whoever writes it.
    assert found["consumer"] == "lake.db.a"


def test_a_star_is_frozen(operations: Operations) -> None:
    operations.workflows.push(workflow(a="SELECT * FROM db.plays"))
    frozen = block(steps(operations)["a"])["query"]
    assert "*" not in frozen
    assert "`id`" in frozen and "`day`" in frozen
    # A table that an earlier step makes is not there yet.
    operations.workflows.push(workflow(a="SELECT * FROM db.later"))
    assert block(steps(operations)["a"])["query"] == "SELECT * FROM db.later"


def test_a_table_comes_after_those_that_it_reads(operations: Operations) -> None:
    chain = {"last": "middle", "middle": "first", "first": "plays"}
    operations.workflows.push(workflow(**{name: f"SELECT id FROM db.{source}" for name, source in chain.items()}))
    found = steps(operations)
    assert {name: list(each["transition"]["successors"]) for name, each in found.items()} == {
        "last": [],
        "middle": ["last"],
        "first": ["middle"],
    }


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ({"a": "SELEC id FROM db.plays"}, "1:126: The query cannot be parsed"),
        ({"a": "SELECT id FROM db.plays; SELECT 1"}, "several statements"),
        ({"a": "INSERT INTO t SELECT 1"}, "The query is not a SELECT"),
        ({"a": ""}, "The query is empty"),
        ({"a": "SELECT id FROM plays"}, "plays"),
    ],
)
def test_mistakes_are_found(operations: Operations, queries: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidWorkflow) as error:
        operations.workflows.push(workflow(**queries))
    assert said in str(error.value)


def test_two_steps_with_one_target(operations: Operations) -> None:
    text = workflow(a="SELECT id FROM db.plays", b="SELECT id FROM db.plays").replace("lake.db.b", "db.a")
    with pytest.raises(InvalidWorkflow, match=r"'a' and 'b' both declare lake\.db\.a"):
        operations.workflows.push(text)


def test_the_language_knows_every_strategy() -> None:
    fields = STEP_TYPES["incremental"].fields
    assert fields is not None
    assert set(fields["strategy"].words) == set(STRATEGIES)
    assert set(STRATEGIES.values()) == set(StrategyName)
