"""What a kind of trigger must be able to do with texts, and who can do it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from typing import Any, ClassVar, Generic

from dalsegno.model.workflow import AnyTrigger, Workflow
from dalsegno.spec.fields import Fields
from dalsegno.spec.reading.context import Reading
from dalsegno.triggers import TRIGGERS, part_of


class TriggerLanguage(ABC, Generic[AnyTrigger]):
    """How triggers of one kind are written."""

    #: Any of these fields under ``Trigger:`` means this kind. Messages name the first.
    fields: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, fields: Fields, reading: Reading) -> AnyTrigger:
        """An item of ``Trigger:``. What is wrong is noted, and something is returned all the same."""

    def read_stored(self, fields: Fields, reading: Reading) -> AnyTrigger:
        """An item of the list in JSON, as ``write`` writes it."""
        return self.read(fields, reading)

    @abstractmethod
    def write(self, trigger: AnyTrigger) -> dict[str, Any]:
        """What ``read_stored`` reads back equal."""

    def check(self, workflow: Workflow, reading: Reading) -> None:
        """Note what is wrong with the triggers of a whole workflow. ``reading.triggers`` has their places."""

    def params(self, trigger: AnyTrigger) -> Collection[str]:
        """The first part of references such as ``signal__param``, if the trigger hands over parameters."""
        return ()

    def from_argument(self, text: str) -> AnyTrigger | None:
        """A trigger that is written in the command line; None if it is none of this kind."""
        return None


def languages() -> Mapping[str, TriggerLanguage[Any]]:
    """By kind."""
    return {kind: language_of(kind) for kind in TRIGGERS}


def language_of(kind: str) -> TriggerLanguage[Any]:
    found: TriggerLanguage[Any] = part_of(kind, "spec", "LANGUAGE")
    return found


def schema_of(kind: str) -> Mapping[str, Any]:
    """For editors: ``written`` is what ``read`` reads, ``stored`` what ``read_stored`` reads; and ``definitions``."""
    found: Mapping[str, Any] = json.loads(resources.files(TRIGGERS[kind]).joinpath("schema.json").read_text("utf-8"))
    return found


def known_fields() -> Sequence[str]:
    """All fields that say of which kind a trigger is."""
    return [name for language in languages().values() for name in language.fields]


def needed_fields() -> str:
    """For messages: one field per kind, such as ``'cron', 'signal' or 'incremental'``."""
    *others, last = [repr(language.fields[0]) for language in languages().values()]
    return f"{', '.join(others)} or {last}" if others else last
