"""The job templates that come with dalsegno, a file each: the patterns of incremental SQL."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from dalsegno.model.templates import JobTemplate
from dalsegno.spec import templates


@cache
def built_in() -> Mapping[str, JobTemplate]:
    """By type."""
    texts = [each.read_bytes() for each in files(__name__).iterdir() if each.name.endswith(".yaml")]
    found = sorted((templates.read(text) for text in texts), key=lambda each: each.job_type)
    return {each.job_type: each for each in found}
