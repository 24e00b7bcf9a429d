"""The ``Spark`` step: SQL, a ``.sql`` file, a PySpark script or a jar."""

from __future__ import annotations

from typing import ClassVar

from dalsegno.errors import UserError
from dalsegno.model.outcomes import Failed, FailureKind
from dalsegno.steps import supervision
from dalsegno.steps.contract import Finished, Running, Started, Work
from dalsegno.steps.spark import applications, scripts, sql
from dalsegno.steps.spark.params import Sql, spark_step
from dalsegno.steps.spark.processes import SparkProcessRunner


class SparkRunner:
    """``spark: {script: …}``, or ``file``, or ``jar``. SQL runs in a thread, which is there at once, and
    Spark outlives us; the rest are processes, which outlive us as well.
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
            return sql.begin(work)
        return self._processes.start(work)

    def poll(self, work: Work, patience: float) -> Running | Finished:
        # An application of a cluster is found without the attempt's folder.
        if supervision.is_claimed(work) or applications.noted(work) is not None:
            return self._processes.poll(work, patience)
        return sql.poll(work, patience)

    def let_go(self, work: Work) -> None:
        """Leave the step to another process."""
        sql.let_go(work)

    def cancel(self, work: Work) -> None:
        if scripts.is_sql(work):
            sql.cancel(work)
        else:
            self._processes.cancel(work)
