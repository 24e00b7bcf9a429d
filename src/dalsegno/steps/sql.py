"""Steps that run SQL in a database of the settings. A process of its own does it (``sql_job``), which can be ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import ClassVar

from dalsegno.model.outcomes import FailureKind
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields
from dalsegno.steps.processes import TEMPORARY_FAILURE, WRONG_CONFIGURATION, ProcessRunner, command_job
from dalsegno.steps.python import import_path
from dalsegno.steps.supervision import Job


class SqlRunner(ProcessRunner):
    """``sql: {connection: NAME, script: …, args: {…}}``, or ``query``, or ``file``."""

    name: ClassVar[str] = "SQL"
    exit_codes: ClassVar[Mapping[int, FailureKind]] = {
        TEMPORARY_FAILURE: FailureKind.PLATFORM,
        WRONG_CONFIGURATION: FailureKind.FATAL,
    }

    def job(self, work: Work) -> Job:
        fields = Fields(work, "sql")
        source = fields.one_of("script", "query", "file")
        order = {
            "url": work.settings.connection(fields.required("connection")).url,
            "script": fields.source(source).text() if source == "file" else fields.required(source),
            "args": fields.mapping("args"),
        }
        command = [sys.executable, "-m", "dalsegno.steps.sql_job"]
        return command_job(work, "sql", command, input=json.dumps(order), variables=import_path())
