"""The folders of attempts: where they are, and whose."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dalsegno.private_files import make_private_folder
from dalsegno.settings import Settings

#: The file in an attempt's folder that says whose it is.
_KEY = "key"


def key_of(flow_id: str, step_id: str, attempt: int) -> str:
    """Letters, digits, dots, dashes and underscores: the readable part may be cut, the digest tells them apart."""
    name = f"{flow_id}/{step_id}/{attempt}"
    shown = re.sub(r"[^A-Za-z0-9.-]+", "_", name)[-80:]
    return f"{shown}.{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def attempt_folder(settings: Settings, run: Mapping[str, Any], flow_id: str, step_id: str, attempt: int) -> Path:
    """Where an attempt keeps its log and whatever else it needs."""
    inside = flow_id.removeprefix(run["id"]).strip("/")
    below = re.sub(r"[^A-Za-z0-9._/-]", "_", inside)
    root: Path = settings.jobs_path / run["workflow_id"] / str(run["number"])
    folder = root / below / step_id / str(attempt)
    key = key_of(flow_id, step_id, attempt)
    # A run of the same number in a store that was lost must not be taken for this one: its jobs have ended.
    return folder if _owner(folder) in (None, key) else folder.with_name(f"{attempt}.{key.rpartition('.')[2]}")


def make_attempt_folder(folder: Path, key: str) -> None:
    """Make it, unless it is there, and say whose it is."""
    make_private_folder(folder)
    if _owner(folder) is None:
        draft = folder / f".{_KEY}"
        draft.write_text(key)
        draft.replace(folder / _KEY)


def _owner(folder: Path) -> str | None:
    try:
        return (folder / _KEY).read_text()
    except FileNotFoundError:
        return None
