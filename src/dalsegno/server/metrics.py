"""Metrics in the words of Prometheus."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as PrometheusMetric
from prometheus_client.registry import Collector

from dalsegno.errors import PlatformError
from dalsegno.operations.metrics import Metric, Metrics

log = logging.getLogger(__name__)

#: For how long metrics are good enough: several may ask, and each answer costs the store something.
_KEPT_SECONDS = 5.0


class PrometheusMetrics(Collector):
    """Reads metrics when somebody asks, and not more often than every few seconds."""

    def __init__(
        self,
        metrics: Callable[[], Metrics],
        clock: Callable[[], datetime],
        own_metrics: Callable[[], list[Metric]] = list,
    ) -> None:
        self._make, self._clock, self._own_metrics = metrics, clock, own_metrics
        self._lock = Lock()
        self._metrics: Metrics | None = None
        self._known: list[PrometheusMetric] = []
        self._read_at: float | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[PrometheusMetric]:
        """Nothing: the registry would else ask the store when it is made."""
        return []

    def collect(self) -> Iterator[PrometheusMetric]:
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at >= _KEPT_SECONDS:
                self._known, self._read_at = self._read(), time.monotonic()
            found = list(self._known)
        yield from found

    def _read(self) -> list[PrometheusMetric]:
        is_up = True
        try:
            self._metrics = self._metrics or self._make()
            found = self._metrics.read(self._clock())
        except PlatformError as error:
            log.warning("the store failed, so there are no metrics: %s", error)
            is_up, found = False, []
        up = GaugeMetricFamily("dalsegno_store_up", "Whether the store could be read.", value=float(is_up))
        return [up, *map(_exported, [*found, *self._own_metrics()])]


def _exported(metric: Metric) -> PrometheusMetric:
    family = CounterMetricFamily if metric.is_total else GaugeMetricFamily
    exported = family(metric.name, metric.help, labels=metric.labels)
    for labels, value in metric.values.items():
        exported.add_metric(labels, value)
    return exported
