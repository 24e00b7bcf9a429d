"""Has a process of its own call the function that declares a table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dalsegno.capture.lake import Lake
from dalsegno.errors import PlatformError, UserError
from dalsegno.model.captures import Capture
from dalsegno.spark.connect import Session
from dalsegno.steps.attempt_log import AttemptLog
from dalsegno.steps.contract import Work
from dalsegno.steps.declared.functions import Given, given_for, sources_of_table
from dalsegno.steps.declared.params import RESULT, DeclaredTable, PythonFunction
from dalsegno.steps.environment import inherited
from dalsegno.steps.python import import_path

_JOB = Path(__file__).with_name("function_job.py")
#: Functions take no time as a rule: they say what is to be computed, and Spark computes it later.
_CALL_SECONDS = 600


def call_for(
    work: Work, lake: Lake, table: DeclaredTable, function: PythonFunction, capture: Capture, session: Session
) -> Given:
    """Call it for an attempt, in the attempt's session, with what the capture says: the same for every attempt."""
    sources = sources_of_table(lake, table)
    given = given_for(lake, table, sources, capture, is_rebuild=work.full_refresh is not None)
    log = AttemptLog(work.log, (*work.secrets, *session.secrets), limit=work.log_limit)
    try:
        call(function, given.relations, address=session.address, environment=inherited(work), say=log.write)
    except UserError as error:
        raise UserError(log.masked(error.message), hint=error.hint) from None
    return given


def call(
    function: PythonFunction,
    relations: Sequence[str],
    *,
    address: str,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> None:
    """Call it with these relations as DataFrames: its result is a view of the session at the address afterwards."""
    folder = str(function.file.path.parent)
    variables = {**environment, **import_path(folder), "SPARK_REMOTE": address}
    request = {
        "file": str(function.file.path),
        "text": function.file.text(),
        "function": function.name,
        "relations": list(relations),
        "view": RESULT,
    }
    with TemporaryDirectory(prefix="dalsegno-") as place:
        asked, answer = Path(place) / "request.json", Path(place) / "answer.json"
        asked.write_text(json.dumps(request), encoding="utf-8")
        code, output = _executed([sys.executable, str(_JOB), folder, str(asked), str(answer)], variables)
        found = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}
    if output.strip():
        say(output)
    if "platform" in found:
        raise PlatformError(found["platform"])
    if "error" in found:
        raise UserError(found["error"])
    if code:
        last = output.strip().splitlines()[-1] if output.strip() else f"it ended with exit code {code}"
        raise UserError(f"{function.file.path.name}: {function.name} failed: {last}", hint="Its log has the traceback.")


def _executed(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """Its exit code, and what it printed."""
    process = subprocess.Popen(
        command,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_CALL_SECONDS)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise PlatformError(f"The function has not returned after {_CALL_SECONDS} seconds.") from error
    return process.returncode, output
