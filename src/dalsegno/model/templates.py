"""Job templates: step types that users make of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dalsegno.model.params import ParamDefinitions, Tag
from dalsegno.model.step_files import StepFile


@dataclass(frozen=True)
class JobTemplate:
    """A step type with parameters filled in; jobs name it as their ``type``, steps of JSON as their ``sub_type``."""

    job_type: str
    #: The type that steps of this template run as.
    step_type: str
    version: str = "default"
    description: str | None = None
    tags: tuple[Tag, ...] = ()
    #: Templates whose parameters come before its own, with the version of each.
    inherit_from: Mapping[str, str] = field(default_factory=dict)
    params: ParamDefinitions = field(default_factory=dict)
    owner: str | None = None
    #: What else was written beside the definition, kept: status, support, test_workflows, git_info and more.
    extra: Mapping[str, Any] = field(default_factory=dict)
    #: The files that it names, then those of the templates that it inherits from.
    files: tuple[StepFile, ...] = ()
