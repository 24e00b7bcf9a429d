"""The verbs of models: tables that ``.sql`` files declare."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dalsegno.errors import UnknownName
from dalsegno.operations.context import Context
from dalsegno.operations.models.results import CheckedModel, ModelResult, ModelsRun, PushedModels

if TYPE_CHECKING:
    from dalsegno.model.full_refresh import FullRefresh
    from dalsegno.operations.models.graph import ModelGraph
    from dalsegno.operations.models.running import Finish


class Models:
    def __init__(self, context: Context) -> None:
        self._context = context

    def check(self, folder: Path) -> tuple[CheckedModel, ...]:
        """The models of a folder, in the order in which they run; or all problems of all files."""
        return tuple(
            CheckedModel(each.path, each.file, each.workflow_id, each.target, each.sources)
            for each in self._graph(folder).models
        )

    def push(self, folder: Path) -> PushedModels:
        """Store each model that has changed as a new version of its workflow."""
        self._context.require("models.push")
        from dalsegno.operations.models import stored as store  # noqa: PLC0415 - slow import

        models, stored = self._graph(folder).models, store.stored_models(self._context)
        pushed = store.push_changed(self._context, models, stored)
        return PushedModels(tuple(pushed), tuple(store.without_file(self._context, folder, stored, models)))

    def run(
        self,
        folder: Path,
        *,
        select: Sequence[str] = (),
        full_refresh: FullRefresh | None = None,
        finish: Finish | None = None,
        report: Callable[[ModelResult], None] = lambda _: None,
    ) -> ModelsRun:
        """Push what has changed, then run the models whose SELECT or sources have changed, each after those it reads.

        ``finish`` brings a run to its end, by default in this process; ``report`` is called after each model.
        """
        self._context.require("models.run")
        from dalsegno.operations.models.running import ModelRunner  # noqa: PLC0415 - slow import

        began = time.monotonic()
        graph = self._graph(folder)
        chosen, pushed = graph.selected(select), self.push(folder)
        runner = ModelRunner(self._context, graph, pushed.models, full_refresh=full_refresh, finish=finish)
        results = []
        for model in chosen:
            results.append(runner.run(model))
            report(results[-1])
        return ModelsRun(tuple(results), pushed.without_file, round(time.monotonic() - began, 3))

    def _graph(self, folder: Path) -> ModelGraph:
        from dalsegno.operations.models.graph import ModelGraph  # noqa: PLC0415 - slow import
        from dalsegno.operations.models.model_files import read_models  # noqa: PLC0415

        if not folder.is_dir():
            raise UnknownName(f"There is no folder {folder}.")
        return ModelGraph.of(read_models(folder, self._context.settings))
