"""Which model runs after which, and which of them are selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from dalsegno.errors import UserError
from dalsegno.hints import did_you_mean
from dalsegno.operations.models.model_files import SUFFIX, ModelFile


@dataclass(frozen=True)
class ModelGraph:
    #: In an order in which each comes after those that it reads.
    models: tuple[ModelFile, ...]
    #: By workflow: the models that write what it reads.
    parents: Mapping[str, tuple[ModelFile, ...]]

    @classmethod
    def of(cls, models: Sequence[ModelFile]) -> ModelGraph:
        """A ``UserError`` names the models of a cycle."""
        writers = {model.target: model for model in models}
        parents = {
            model.workflow_id: tuple(writers[source] for source in model.sources if source in writers)
            for model in models
        }
        by_id = {model.workflow_id: model for model in models}
        order = TopologicalSorter({name: [each.workflow_id for each in before] for name, before in parents.items()})
        try:
            return cls(tuple(by_id[name] for name in order.static_order()), parents)
        except CycleError as error:
            names = [by_id[name].path for name in error.args[1]]
            raise UserError(
                f"The models read each other: {' → '.join(names)}.",
                hint="Take what they share into a model of its own.",
            ) from None

    def selected(self, wanted: Sequence[str]) -> tuple[ModelFile, ...]:
        """``NAME``, ``+NAME`` with all that it reads, ``NAME+`` with all that reads it; everything if none is named."""
        if not wanted:
            return self.models
        chosen: set[str] = set()
        for text in wanted:
            model = self._named(text.strip("+"))
            chosen.add(model.workflow_id)
            chosen |= self._before(model) if text.startswith("+") else set()
            chosen |= self._behind(model) if text.endswith("+") else set()
        return tuple(model for model in self.models if model.workflow_id in chosen)

    def _named(self, name: str) -> ModelFile:
        known = {
            word: model
            for model in self.models
            for word in (model.path, model.path + SUFFIX, model.file, model.workflow_id, str(model.target))
        }
        found = [known[name]] if name in known else [model for model in self.models if model.name == name]
        if len(found) == 1:
            return found[0]
        if found:
            paths = ", ".join(model.path for model in found)
            raise UserError(
                f"{len(found)} models are named {name!r}: {paths}.", hint="Name one of them with its folder."
            )
        names = [model.name for model in self.models]
        raise UserError(f"There is no model {name!r}.", hint=did_you_mean(name, [*names, *known], _known(names)))

    def _before(self, model: ModelFile) -> set[str]:
        found = {model.workflow_id}
        # Against their order: whatever reads something comes later.
        for other in reversed(self.models):
            if other.workflow_id in found:
                found |= {parent.workflow_id for parent in self.parents[other.workflow_id]}
        return found

    def _behind(self, model: ModelFile) -> set[str]:
        found = {model.workflow_id}
        for other in self.models:
            if any(parent.workflow_id in found for parent in self.parents[other.workflow_id]):
                found.add(other.workflow_id)
        return found


def _known(names: Sequence[str]) -> str:
    return f"Known are: {', '.join(sorted(names))}."
