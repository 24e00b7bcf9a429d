"""Where scenarios are played: a project with a warm Spark, and the commands that people type there."""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyiceberg.catalog import Catalog

from dalsegno.iceberg.catalogs import open_catalog
from dalsegno.model.runs import RunStatus
from dalsegno.operations.facade import Operations
from dalsegno.operations.run_views import RunView
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.steps.spark.sessions import local_server
from dalsegno.store import Store
from tests.callers import admin
from tests.services.faulty_proxy import FaultyProxy

#: Up to the end of the sentence: a point within a word is part of it.
_COMMAND = re.compile(r"dalsegno ((?:undo|resolve|restart|run|abandon|commit|stop)\b(?:[^.,;\n]|\.(?=\w))*)")


_USAGE_ERRORS = frozenset({"UsageError", "NoSuchOption", "BadParameter", "MissingParameter", "BadOptionUsage"})


@dataclass(frozen=True)
class Done:
    code: int
    text: str


class Place:
    def __init__(self, settings: Settings, proxy: FaultyProxy) -> None:
        self.settings = settings
        #: In front of the catalog ``rest``.
        self.proxy = proxy
        self.operations = Operations(Store.open(settings.store), settings, admin())
        self._catalogs: dict[str, Catalog] = {}

    def close(self) -> None:
        self.operations.close()

    def pyiceberg(self, name: str) -> Catalog:
        if name not in self._catalogs:
            catalog = self.settings.catalog(name)
            # What tests look at is not to fail.
            direct = replace(catalog, uri=self.proxy.upstream) if name == "rest" else catalog
            self._catalogs[name] = open_catalog(direct).pyiceberg
        return self._catalogs[name]

    def sql(self, *statements: str) -> list[dict[str, Any]]:
        session = Session(local_server(self.settings).ensure().address, session_id_for(uuid4().hex))
        rows: list[dict[str, Any]] = []
        for statement in statements:
            rows = session.execute(statement, 100).to_pylist()
        session.release()
        return rows

    def command(self, *arguments: str) -> Done:
        """What somebody types, in this process."""
        from dalsegno.cli.app import app

        output, code = io.StringIO(), 0
        with _kept(self.settings.root), redirect_stdout(output), redirect_stderr(output):
            try:
                app(list(arguments), prog_name="dalsegno")
            except SystemExit as end:
                code = int(end.code or 0)
        return Done(code, output.getvalue())

    def is_command(self, arguments: Sequence[str]) -> bool:
        """Whether there is such a command with such options; it is not carried out."""
        from typer.core import TyperGroup
        from typer.main import get_command

        from dalsegno.cli.app import app

        root = get_command(app)
        try:
            context = root.make_context("dalsegno", list(arguments[:1]))
            known = root.get_command(context, arguments[0]) if isinstance(root, TyperGroup) else None
            return known is not None and bool(known.make_context(arguments[0], list(arguments[1:]), context))
        except Exception as error:
            # Typer has a copy of click, whose errors have no public name.
            if type(error).__name__ in _USAGE_ERRORS:
                return False
            raise

    def failures(self, run: RunView) -> list[Mapping[str, Any]]:
        """What the steps of a run say that failed, those of the runs that it called included."""
        found: list[Mapping[str, Any]] = []
        waiting = list(self.operations.runs.steps(run.id))
        while waiting:
            step = waiting.pop(0)
            if step.failure:
                found.append(step.failure)
            if step.run:
                waiting += self.operations.runs.steps(step.run)
            for inside in step.inside.values():
                waiting += inside
        return found

    def said(self, run: RunView) -> str:
        """All that a run says about its end."""
        failures = [f"{each.get('message')} {each.get('hint') or ''}" for each in self.failures(run)]
        return "\n".join([run.reason or "", *failures]).strip()

    @staticmethod
    def ways_on(text: str) -> list[list[str]]:
        """The commands that a text tells people to type."""
        return [found.strip().split() for found in _COMMAND.findall(text)]


def is_over(run: RunView) -> bool:
    return RunStatus(run.status).is_final


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    """Type a command in a folder, and leave this process as it was."""
    root, before = logging.getLogger(), Path.cwd()
    handlers, level = list(root.handlers), root.level
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        root.handlers[:] = handlers
        root.setLevel(level)
