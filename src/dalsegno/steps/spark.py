"""The ``Spark`` step: SQL, a ``.sql`` file, a PySpark script or a jar."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from dalsegno.errors import UserError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.steps import spark_sql, supervision
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark_params import Sql, spark_step
from dalsegno.steps.spark_processes import SparkProcessRunner


class SparkRunner:
    """``spark: {script: …}``, or ``file``, or ``jar``. SQL runs in a thread, which is there at once; the rest are
    processes, which outlive us.
    """

    name: ClassVar[str] = "Spark"
    # Names of tables are pasted into SQL: it has no other way to be given one.
    raw: ClassVar[frozenset[str]] = frozenset()

    _processes: ClassVar[SparkProcessRunner] = SparkProcessRunner()

    def start(self, work: Work) -> Started | Finished:
        try:
            step = spark_step(work)
        except UserError as error:
            return Finished(Failed(FailureKind.FATAL, error.message, error.hint))
        if isinstance(step.job, Sql) and step.submission is None:
            hiding = replace(work, secrets=(*work.secrets, *step.secrets))
            return spark_sql.begin(hiding, step.job.statements, step.conf)
        return self._processes.start(work)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        if supervision.is_claimed(work):
            return self._processes.poll(work, patience)
        return spark_sql.poll(work, patience)

    def let_go(self, work: Work) -> None:
        spark_sql.let_go(work)

    def cancel(self, work: Work) -> None:
        if spark_sql.began(work):
            spark_sql.cancel(work)
        else:
            self._processes.cancel(work)
