"""What a step of some type says about itself, read with care: ``shell: {script: …}`` and the like."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalsegno.errors import UserError
from dalsegno.hints import did_you_mean
from dalsegno.settings import Settings
from dalsegno.spec.step_types import fields_of
from dalsegno.steps.contract import Work
from dalsegno.steps.file_fields import file_name
from dalsegno.steps.own_files import refuse_own

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SourceFile:
    """A file that a step names: what was pushed of it, or else the file itself."""

    #: Where it is, or would be on this machine.
    path: Path
    #: As it was pushed; None: the file itself counts.
    content: str | None

    @property
    def copy_name(self) -> str:
        """What a copy of what was pushed is called in the attempt's folder, like nothing else that is there."""
        return f"pushed-{self.path.name[-200:]}"

    @property
    def copies(self) -> dict[str, str]:
        """The files that its job needs in the attempt's folder."""
        return {} if self.content is None else {self.copy_name: self.content}

    def runnable(self, folder: Path) -> Path:
        """What a program can be told to read; ``copies`` are in this folder then."""
        return self.path if self.content is None else folder / self.copy_name

    def text(self) -> str:
        if self.content is not None:
            return self.content.removeprefix("\ufeff")
        try:
            return self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"The file {self.path} is not UTF-8: {error}.", hint="Save it as UTF-8.") from error


class BlockValues:
    """The values of one block; what is of the wrong kind is refused by name."""

    def __init__(self, block: str, values: Mapping[str, Any]) -> None:
        self.block = block
        self.values = values

    def text(self, name: str) -> str | None:
        """A text; numbers and truth values are written as in JSON. None if there is none."""
        value = self.values.get(name)
        return None if value is None else self.plain(name, value)

    def required(self, name: str) -> str:
        text = self.text(name)
        if not text:
            raise UserError(f"{self.block}.{name} is needed.")
        return text

    def one_of(self, *names: str) -> str:
        """The name of the one field of these that is given."""
        given = [name for name in names if self.values.get(name) not in (None, "", [])]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise UserError(f"{self.block} needs one of {', '.join(names)}; found {found}.")
        return given[0]

    def texts(self, name: str) -> list[str]:
        """A list of texts; a single one counts as a list of itself."""
        value = self.values.get(name)
        if value is None:
            return []
        return [self.plain(name, item) for item in (value if isinstance(value, list) else [value])]

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.values.get(name) or {}
        if not isinstance(value, Mapping):
            raise UserError(f"{self.block}.{name} must hold values by name, found {value!r}.")
        return dict(value)

    def variables(self, name: str = "env") -> dict[str, str]:
        """Environment variables."""
        variables = {key: self.plain(f"{name}.{key}", value) for key, value in self.mapping(name).items()}
        for key in variables:
            if not _VARIABLE.fullmatch(key) or key.startswith("DALSEGNO_"):
                raise UserError(
                    f"{self.block}.{name}: {key!r} cannot be set.",
                    hint="A variable's name has letters, digits and underscores, and those that begin with DALSEGNO_ "
                    "are taken.",
                )
        return variables

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false; also one that a parameter brought along as a text."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        raise UserError(f"{self.block}.{name} is {value!r}, expected true or false.")

    def seconds(self, name: str, default: float) -> float:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UserError(f"{self.block}.{name} is {value!r}, expected a number of seconds above 0.")
        return float(value)

    def count(self, name: str) -> int | None:
        """A whole number above 0; also one that a parameter brought along as a text."""
        text = self.text(name)
        if not text:
            return None
        if not text.isdecimal() or not int(text):
            raise UserError(f"{self.block}.{name} is {text!r}, expected a whole number above 0.")
        return int(text)

    def plain(self, name: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        raise UserError(f"{self.block}.{name} must be a text or a number, found {value!r}.")


class Fields(BlockValues):
    """The fields of one type's block; what is misspelt or of the wrong kind is refused by name."""

    def __init__(self, work: Work, block: str, known: Collection[str] | None = None) -> None:
        """``known`` are the fields of a type of another package; those of built-in types are declared already."""
        known = (fields_of(block) or {}).keys() if known is None else known
        values = work.params.get(block, {})
        if not isinstance(values, Mapping):
            raise UserError(
                f"Step {work.step_id}: {block} must hold fields, found {values!r}.",
                hint=f"Known are: {', '.join(sorted(known))}.",
            )
        super().__init__(block, values)
        self.settings = work.settings
        self._pushed_file = work.pushed_file
        for name in values.keys() - set(known):
            raise UserError(f"There is no field {block}.{name}.", hint=did_you_mean(name, known))

    def path(self, name: str) -> Path | None:
        """A file or folder inside the root or a folder that the settings allow."""
        text = self.text(name)
        return None if text is None else allowed_path(text, self.settings, f"{self.block}.{name}")

    def file(self, name: str) -> Path:
        """A file that must be there."""
        field = f"{self.block}.{name}"
        written = self.required(name)
        path = allowed_path(file_name(field, written) or written, self.settings, field)
        if not path.is_file():
            raise UserError(
                f"{self.block}.{name}: there is no file {path}.", hint=f"Paths start from {self.settings.root}."
            )
        return path

    def source(self, name: str) -> SourceFile:
        """A file as it was pushed, wherever it is now; one that was not pushed must be there."""
        field = f"{self.block}.{name}"
        written = file_name(field, self.required(name))
        if written is not None and (content := self._pushed_file(field, written)) is not None:
            return SourceFile((self.settings.root / written).resolve(), content)
        return SourceFile(self.file(name), None)

    def folder(self, name: str = "folder") -> Path:
        """The folder that a job runs in: by default the root."""
        path = self.path(name) or self.settings.root
        if not path.is_dir():
            raise UserError(f"{self.block}.{name}: there is no folder {path}.")
        return path


def allowed_path(text: str, settings: Settings, where: str) -> Path:
    """The path with links followed, if it is where steps may take files from.

    Whoever writes a workflow can run what they like; but a path may hold a value that somebody else gave.
    """
    if "\0" in text:
        raise UserError(f"{where}: a path cannot hold a NUL character.")
    path = (settings.root / text).resolve()
    folders = [settings.root.resolve(), *(Path(folder).resolve() for folder in settings.job_folders)]
    if not any(path.is_relative_to(folder) for folder in folders):
        raise UserError(
            f"{where}: {text} is outside of {', '.join(map(str, folders))}.",
            hint="Move it there, or add its folder to the setting job_folders.",
        )
    refuse_own(path, settings, where)
    return path
