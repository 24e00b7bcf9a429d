"""Applications that a cluster runs without us: found again by their tag, whatever died since they were submitted.

The attempt's folder has what is needed to ask the cluster before anything is submitted. The handle of the attempt and
the record of its statements have the same, for other machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dalsegno.errors import PlatformError
from dalsegno.spark import yarn
from dalsegno.spark.yarn import Application, YarnClient
from dalsegno.steps.contract import Running, Work

#: By this name the handle of an attempt has its application.
HANDLE = "application"
_FILE, _ASKED, _GONE = "application.json", "application.asked", "application.ended"
#: How often the cluster is asked about an application that nobody watches.
_LOOK_SECONDS = 10.0


@dataclass(frozen=True)
class ClusterApplication:
    """What the cluster is asked for, and how."""

    tag: str
    client: YarnClient

    @property
    def as_json(self) -> dict[str, Any]:
        return {"tag": self.tag, "yarn": self.client.as_json()}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> ClusterApplication:
        return cls(stored["tag"], YarnClient.of_json(stored["yarn"]))

    def find(self) -> Application | None:
        return self.client.find(self.tag)

    def end(self) -> Application | None:
        return self.client.end(self.tag)


def yarn_client(variables: Mapping[str, str], conf: Mapping[str, str]) -> YarnClient:
    """The cluster that a step means: by its own variables, or by ours."""
    environment = {name: value for name in yarn.VARIABLES if (value := variables.get(name, os.environ.get(name, "")))}
    return YarnClient(environment, {name: conf[name] for name in yarn.LOGIN if name in conf})


def tag_of(work: Work) -> str:
    """Names the attempt in a cluster. YARN takes 100 characters, and has no capital letters."""
    return f"dalsegno_{hashlib.sha256(work.key.encode()).hexdigest()[:40]}"


def note(work: Work, application: ClusterApplication) -> None:
    """Leave what finds the application in the attempt's folder, before it is submitted."""
    draft = work.folder / f".{_FILE}"
    draft.write_text(json.dumps(application.as_json))
    draft.replace(work.folder / _FILE)


def noted(work: Work) -> ClusterApplication | None:
    """The attempt's application, if it has one: by its folder, or by its handle if another machine has the folder."""
    try:
        stored = json.loads((work.folder / _FILE).read_bytes())
    except FileNotFoundError:
        stored = (work.handle or {}).get(HANDLE)
    return ClusterApplication.of_json(stored) if stored else None


def look(work: Work, application: ClusterApplication, patience: float) -> Running | Application | None:
    """The application once it has ended, or None if there is none.

    ``OSError`` if the cluster does not answer: nobody knows then, and to fail would be to submit it twice.
    """
    asked = work.folder / _ASKED
    if (work.folder / _GONE).exists():
        return _ended(work)
    if asked.exists() and time.time() - asked.stat().st_mtime < _LOOK_SECONDS:
        time.sleep(patience)
        return Running()
    try:
        found = application.find()
    except PlatformError as error:
        asked.touch()
        raise OSError(str(error)) from error
    if found is not None and not found.has_ended:
        asked.touch()
        return Running()
    if found is not None:
        found.outlive()
    _note_ended(work, found)
    return found


def end(work: Work, application: ClusterApplication) -> Application | None:
    """End the application; returns when nothing of it is at work."""
    if (work.folder / _GONE).exists():
        return _ended(work)
    found = application.end()
    _note_ended(work, found)
    return found


def _note_ended(work: Work, found: Application | None) -> None:
    (work.folder / _GONE).write_text(json.dumps(asdict(found) if found else None))


def _ended(work: Work) -> Application | None:
    stored = json.loads((work.folder / _GONE).read_bytes())
    return Application(**stored) if stored else None
