"""``rewrite --prove``: what is wrong is found on clones, and nothing else is touched."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from dalsegno.capture.consumers import consumer_of_workflow
from dalsegno.capture.lake import Lake
from dalsegno.cli import proof_text
from dalsegno.errors import UserError
from dalsegno.model.proofs import Outcome
from dalsegno.model.runs import RunStatus
from dalsegno.model.tables import TableName
from dalsegno.operations.proving.rehearsal import remove_dead
from dalsegno.operations.proving.request import ProofRequest
from dalsegno.operations.run_views import StepView
from dalsegno.rewrite import writing
from dalsegno.settings import Settings
from tests.acceptance.conftest import Commands
from tests.acceptance.test_declared import DAILY, Shop

pytestmark = pytest.mark.spark


class Prover(Shop):
    def request(self, query: str, target: str = "made", **options: object) -> ProofRequest:
        return ProofRequest(query.format(ns=self.ns), f"lake.{self.ns}.{target}", options=options)

    def position(self, target: str, source: str) -> object:
        consumer = consumer_of_workflow(f"lake.{self.ns}.{target}")
        return self.operations.store.position(consumer, TableName.of(f"lake.{self.ns}.{source}"))

    def everything(self) -> dict[str, object]:
        """All that a proof must leave as it is: each table's metadata files, and its rows."""
        rows = self.sql(f"SHOW TABLES IN lake.{self.ns}")
        return {str(row["tableName"]): self._files(str(row["tableName"])) for row in rows}

    def _files(self, table: str) -> object:
        log = self.sql(f"SELECT file FROM lake.{self.ns}.{table}.metadata_log_entries ORDER BY timestamp, file")
        rows = self.sql(f"SELECT * FROM lake.{self.ns}.{table}")
        return log, sorted(map(str, rows))

    def scratch(self) -> list[str]:
        found = [str(row["namespace"]) for row in self.sql("SHOW NAMESPACES IN lake")]
        return [name for name in found if name.startswith("dalsegno_scratch")]


@pytest.fixture
def prover(settings: Settings) -> Iterator[Prover]:
    made = Prover(settings)
    made.ns = f"prove_{uuid4().hex[:8]}"
    made.sql(
        f"CREATE NAMESPACE lake.{made.ns}",
        f"CREATE TABLE lake.{made.ns}.orders (id BIGINT, customer STRING, amount BIGINT, day DATE) "
        "USING iceberg PARTITIONED BY (day)",
        f"CREATE TABLE lake.{made.ns}.customers (customer STRING, country STRING) USING iceberg",
        f"INSERT INTO lake.{made.ns}.orders VALUES (1, 'ada', 10, DATE'2026-01-01'), (2, 'bob', 20, DATE'2026-01-02')",
        f"INSERT INTO lake.{made.ns}.orders VALUES (3, 'ada', 5, DATE'2025-06-01'), (4, NULL, 7, NULL)",
        f"DELETE FROM lake.{made.ns}.orders WHERE id = 2",
        f"INSERT INTO lake.{made.ns}.customers VALUES ('ada', 'DE')",
    )
    yield made
    made.operations.close()


def test_a_rule_that_is_broken_is_found(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    """NULL keys are compared with ``=``, so their rows are never replaced."""
    merge = writing.Writer.merge
    monkeypatch.setattr(writing.Writer, "merge", lambda *args: merge(*args).replace("<=> s.", "= s."))
    by_customer = "SELECT customer, max(amount) AS most, count(*) AS orders FROM lake.{ns}.orders GROUP BY customer"
    proof = prover.operations.tables.prove(prover.request(by_customer))
    assert not proof.is_proven
    assert "MERGE INTO" in proof_text.proof(proof)
    assert proof.steps[-1].outcome is Outcome.DIFFERS
    found = proof.difference
    assert found is not None
    assert found.strategy == "touched keys"
    assert found.superfluous_rows + found.missing_rows > 0
    assert found.rows[0]["expected"] or found.rows[0]["found"]
    assert "MERGE INTO" in found.sql
    assert prover.scratch() == []
    with pytest.raises(UserError, match="The last proof of this SELECT"):
        prover.operations.workflows.adopt(prover.request(by_customer))


def test_formats_deletes_and_columns_of_all_ages(prover: Prover) -> None:
    """A source of version 3 with deletion vectors, a NULL partition, compaction, and columns that came and went.

    It is joined with a table that has one snapshot, and somebody writes to it meanwhile.
    """
    ns = prover.ns
    prover.sql(
        f"CREATE TABLE lake.{ns}.old (id BIGINT, amount DOUBLE, day DATE) USING iceberg PARTITIONED BY (day) "
        "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read')",
        f"INSERT INTO lake.{ns}.old VALUES (1, 0.1, DATE'2026-01-01'), (2, 0.2, NULL), (3, 0.3, NULL)",
        f"DELETE FROM lake.{ns}.old WHERE id = 3",
        f"ALTER TABLE lake.{ns}.old RENAME COLUMN amount TO price",
        f"ALTER TABLE lake.{ns}.old ADD COLUMN note STRING",
        f"INSERT INTO lake.{ns}.old VALUES (4, 0.4, DATE'2026-01-01', 'ada')",
        f"CALL lake.system.rewrite_data_files(table => '{ns}.old', options => map('rewrite-all', 'true'))",
        f"UPDATE lake.{ns}.old SET price = 7 WHERE id = 2",
    )
    query = """SELECT o.day, c.country, sum(o.price) AS price, count(*) AS n
FROM lake.{ns}.old o LEFT JOIN lake.{ns}.customers c ON o.note = c.customer GROUP BY o.day, c.country"""
    before = prover.everything()
    said: list[str] = []

    def say(line: str) -> None:
        if not said:
            prover.sql(f"INSERT INTO lake.{ns}.customers VALUES ('eve', 'FR')")
        said.append(line)

    proof = prover.operations.tables.prove(prover.request(query), say=say)
    assert proof.is_proven, proof
    assert {step.outcome for step in proof.steps} == {Outcome.EQUAL}
    assert proof.seen == {"append": 1, "delete": 1, "compaction": 1, "overwrite": 1}
    assert {"late rows", "duplicates", "NULLs added", "rows deleted", "groups deleted", "all at once"} <= set(
        proof.made_up
    )
    assert "full" not in {step.strategy for step in proof.steps[1:]}
    assert [each.name for each in proof.without_history] == ["customers"]
    assert {name: files for name, files in prover.everything().items() if name != "customers"} == {
        name: files for name, files in before.items() if name != "customers"
    }
    assert prover.sql(f"SELECT count(*) AS n FROM lake.{ns}.customers") == [{"n": 2}]
    assert prover.scratch() == []
    assert proof.left_over == ()


def test_what_is_proven_is_adopted(
    prover: Prover, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(prover.settings.root)
    run_command = Commands(prover.settings.root, capsys)
    paid = "SELECT id, customer, amount FROM lake.{ns}.orders WHERE amount > 0"
    file = tmp_path / "paid.sql"
    file.write_text(paid.format(ns=prover.ns))
    rewrite = ("rewrite", str(file), "--target", f"lake.{prover.ns}.paid")
    refused = run_command(*rewrite, "--adopt")
    assert (refused.code, "was not proven" in refused.err) == (2, True)
    before = prover.everything()
    done = run_command(*rewrite, "--prove", "14", "--adopt")
    assert done.code == 0, done
    assert "in the history  append, delete\n" in done.out
    assert "Proven: equal to the full SELECT after each of " in done.out
    assert f"{prover.ns}.paid version 1 keeps lake.{prover.ns}.paid up to date." in done.out
    assert "[2/3] append +2 orders: append" in done.err
    assert prover.everything() == before
    assert prover.scratch() == []
    costs = prover.operations.store.proof_costs(TableName.of(f"lake.{prover.ns}.paid"))
    assert {"full", "append"} <= {strategy for strategy, _ in costs}
    assert all(cost.seconds for _, cost in costs)
    adopted = prover.operations.workflows.adopt(prover.request(f"-- the same\n{paid}", "paid"))
    assert (adopted.workflow_id, adopted.audit_first_runs) == (f"{prover.ns}.paid", 0)
    changes = [each for each in prover.operations.admin.history() if each.verb == "workflows.adopt"]
    assert {each.subject for each in changes if each.subject.startswith(prover.ns)} == {adopted.workflow_id}
    run = prover.operations.runs.start(adopted.workflow_id)
    assert prover.operations.runs.finish(run.id).status is RunStatus.SUCCEEDED
    prover.check("paid", paid)
    with pytest.raises(UserError, match="was not proven"):
        prover.operations.workflows.adopt(prover.request(f"{paid} AND id > 1", "paid"))


def test_without_a_history_the_first_runs_are_audited(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    countries = "SELECT customer, max(country) AS country FROM lake.{ns}.customers GROUP BY customer"
    adopted = prover.operations.workflows.adopt(prover.request(countries, "countries", strategy="touched_keys"))
    assert (adopted.is_proven, adopted.audit_first_runs) == (False, 3)

    def run() -> tuple[RunStatus, StepView]:
        ended = prover.operations.runs.finish(prover.operations.runs.start(adopted.workflow_id).id)
        [step] = prover.operations.runs.steps(ended.id)
        return ended.status, step

    status, step = run()
    assert (status, step.outputs["audit"]) == (RunStatus.SUCCEEDED, "equal"), step
    position = prover.position("countries", "customers")
    prover.sql(f"INSERT INTO lake.{prover.ns}.customers VALUES (NULL, 'FR')")
    status, _ = run()
    assert status is RunStatus.SUCCEEDED
    prover.sql(f"INSERT INTO lake.{prover.ns}.customers VALUES (NULL, 'GB')")
    with monkeypatch.context() as patch:
        merge = writing.Writer.merge
        patch.setattr(writing.Writer, "merge", lambda *args: merge(*args).replace("<=> s.", "= s."))
        before = prover.position("countries", "customers")
        status, step = run()
    assert status is RunStatus.FAILED
    assert "is not what its SELECT gives" in str(step.failure)
    assert prover.position("countries", "customers") == before != position
    # Nothing gets past it until somebody takes back what it wrote.
    assert run()[0] is RunStatus.FAILED
    [pending] = prover.operations.captures.list(consumer_of_workflow(f"lake.{prover.ns}.countries"), pending_only=True)
    assert f"dalsegno undo {pending.id}" in str(step.failure)
    prover.operations.captures.undo(pending.id)
    status, step = run()
    assert (status, step.outputs.get("audit")) == (RunStatus.SUCCEEDED, "equal"), step
    prover.check("countries", countries)
    # Three were audited.
    prover.sql(f"INSERT INTO lake.{prover.ns}.customers VALUES ('eve', 'GB')")
    status, step = run()
    assert (status, step.outputs.get("audit")) == (RunStatus.SUCCEEDED, None), step


KILLED = """
import os, signal
from dalsegno.operations.facade import Operations
from dalsegno.operations.proving.rehearsal import remove_dead
from dalsegno.operations.proving.request import ProofRequest

def say(line):
    if line.startswith("[2"):
        os.kill(os.getpid(), signal.SIGKILL)

with Operations.open() as operations:
    operations.tables.prove(ProofRequest({query!r}, {target!r}), say=say)
"""


def test_a_proof_that_is_killed_leaves_no_damage(prover: Prover) -> None:
    before = prover.everything()
    code = KILLED.format(query=DAILY.format(ns=prover.ns), target=f"lake.{prover.ns}.made")
    ended = subprocess.run([sys.executable, "-c", code], cwd=prover.settings.root, timeout=600, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert prover.scratch()
    assert prover.everything() == before
    # As the next proof does it.
    with Lake.open(prover.settings) as lake:
        assert remove_dead(lake.context) == ()
    assert prover.scratch() == []
    assert not list(prover.settings.jobs_path.with_name("proofs").iterdir())
    assert prover.everything() == before
