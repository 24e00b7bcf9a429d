"""``Trigger: {file: PATH}``; in JSON, ``file_triggers: [{path: PATH}]``."""

from __future__ import annotations

from typing import Any, ClassVar

from dalsegno.model.workflow import Workflow
from dalsegno.spec.fields import Fields
from dalsegno.spec.reading.context import Reading
from dalsegno.triggers.spec import TriggerLanguage
from tests.triggers.file_triggers.model import FileTrigger


class FileLanguage(TriggerLanguage[FileTrigger]):
    fields: ClassVar[tuple[str, ...]] = ("file",)

    def read(self, fields: Fields, reading: Reading) -> FileTrigger:
        return _read(fields, "file", reading)

    def read_stored(self, fields: Fields, reading: Reading) -> FileTrigger:
        return _read(fields, "path", reading)

    def write(self, trigger: FileTrigger) -> dict[str, Any]:
        return {"path": trigger.path}

    def check(self, workflow: Workflow, reading: Reading) -> None:
        seen: set[str] = set()
        for trigger, mark, _ in reading.triggers:
            if isinstance(trigger, FileTrigger):
                if trigger.path in seen:
                    reading.problems.add(f"two triggers watch {trigger.path!r}", mark, hint="delete one")
                seen.add(trigger.path)


def _read(fields: Fields, name: str, reading: Reading) -> FileTrigger:
    trigger = FileTrigger(fields.text(name) or "")
    if not trigger.path.startswith("/"):
        fields.add(f"{trigger.path!r} isn't an absolute path", name, "begin with /")
    fields.refuse_rest("a file trigger")
    reading.triggers.append((trigger, fields.mark, {}))
    return trigger


LANGUAGE = FileLanguage()
