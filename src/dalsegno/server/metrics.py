"""Figures in the words of Prometheus."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dalsegno.errors import PlatformError
from dalsegno.operations.figures import Figure, Figures

log = logging.getLogger(__name__)

#: For how long figures are good enough: several may ask, and each answer costs the store something.
_KEPT_SECONDS = 5.0


class Metrics(Collector):
    """Reads figures when somebody asks, and not more often than every few seconds."""

    def __init__(
        self,
        figures: Callable[[], Figures],
        clock: Callable[[], datetime],
        own_figures: Callable[[], list[Figure]] = list,
    ) -> None:
        self._make, self._clock, self._own_figures = figures, clock, own_figures
        self._lock = Lock()
        self._figures: Figures | None = None
        self._known: list[Metric] = []
        self._read_at: float | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: the registry would else ask the store when it is made."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at >= _KEPT_SECONDS:
                self._known, self._read_at = self._read(), time.monotonic()
            found = list(self._known)
        yield from found

    def _read(self) -> list[Metric]:
        is_up = True
        try:
            self._figures = self._figures or self._make()
            found = self._figures.read(self._clock())
        except PlatformError as error:
            log.warning("the store failed, so there are no metrics: %s", error)
            is_up, found = False, []
        up = GaugeMetricFamily("dalsegno_store_up", "Whether the store could be read.", value=float(is_up))
        return [up, *map(_metric, [*found, *self._own_figures()])]


def _metric(figure: Figure) -> Metric:
    metric = (
        CounterMetricFamily(figure.name, figure.help, labels=figure.labels)
        if figure.is_total
        else GaugeMetricFamily(figure.name, figure.help, labels=figure.labels)
    )
    for labels, value in figure.values.items():
        metric.add_metric(labels, value)
    return metric
