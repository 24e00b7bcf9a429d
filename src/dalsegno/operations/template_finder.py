"""Finds job templates, with what they inherit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from dalsegno.errors import UnknownName, UserError
from dalsegno.hints import Verb, action
from dalsegno.model.step_files import StepFile
from dalsegno.model.templates import JobTemplate
from dalsegno.spec import templates as spec
from dalsegno.spec.job_templates import built_in
from dalsegno.spec.reading.context import StepTypes
from dalsegno.store import Store, step_files, workflows

DEFAULT_VERSION = "default"


class TemplateFinder:
    """The job templates of one store, and those that come with dalsegno. The store's count, if both have one."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def step_types(self) -> StepTypes:
        """What ``type`` may say in a workflow."""
        return StepTypes(templates={each.job_type: each.step_type for each in self.all()})

    def all(self) -> list[JobTemplate]:
        with self.store.database.reading() as connection:
            rows = workflows.template_rows(connection)
        pushed = [spec.from_json(row["definition"]) for row in rows]
        known = {each.job_type for each in pushed}
        return [*pushed, *(each for each in built_in().values() if each.job_type not in known)]

    def find(self, job_type: str, version: str | None = None) -> JobTemplate:
        """The template of this version, or the default one, or the only one; with what it inherits."""
        with self.store.database.reading() as connection:
            rows = workflows.template_rows(connection, job_type)
        if not rows and job_type in built_in() and version in (None, DEFAULT_VERSION):
            return built_in()[job_type]
        known: Mapping[str, Any] = {row["version"]: row["definition"] for row in rows}
        wanted = version or (DEFAULT_VERSION if DEFAULT_VERSION in known or len(known) != 1 else next(iter(known)))
        if wanted not in known:
            raise self.missing(job_type, wanted, list(known))
        return self._inherited(spec.from_json(known[wanted]), ())

    def _inherited(self, template: JobTemplate, below: tuple[str, ...]) -> JobTemplate:
        if template.job_type in below:
            circle = " → ".join((*below, template.job_type))
            raise UserError(f"Job templates inherit from each other in a circle: {circle}.")
        params: dict[str, Any] = {}
        with self.store.database.reading() as connection:
            files = tuple(step_files.of_template(connection, template.job_type, template.version))
        of_parents: tuple[StepFile, ...] = ()
        for parent, version in template.inherit_from.items():
            with self.store.database.reading() as connection:
                rows = {row["version"]: row["definition"] for row in workflows.template_rows(connection, parent)}
            if version in rows:
                inherited = self._inherited(spec.from_json(rows[version]), (*below, template.job_type))
            elif not rows and parent in built_in():
                inherited = built_in()[parent]
            else:
                raise self.missing(parent, version, list(rows))
            params |= inherited.params
            # As with parameters, the last one counts.
            of_parents = (*inherited.files, *of_parents)
        return replace(template, params={**params, **template.params}, files=(*files, *of_parents))

    def missing(self, job_type: str, version: str, versions: list[str]) -> UnknownName:
        if versions:
            return UnknownName(
                f"The job template {job_type!r} has no version {version!r}; it has {', '.join(versions)}.",
                hint="Name one of them as sub_type_version, or as the parameter job_template_version.",
            )
        close = get_close_matches(job_type, [each.job_type for each in self.all()], n=1)
        return UnknownName(
            f"There is no job template {job_type!r}.",
            hint=f"Did you mean {close[0]!r}?" if close else None,
            actions=[] if close else [action("Push it first", Verb.PUSH_TEMPLATE)],
        )
