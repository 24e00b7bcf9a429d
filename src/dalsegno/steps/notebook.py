"""Steps that run a Jupyter notebook, by papermill: the notebook with its results is kept, also when a cell fails.

papermill cannot be told to stop, and waits for ever for a kernel that was killed for its memory; as a supervised
process, it and its kernel end when they must.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import Any, ClassVar

from dalsegno.errors import UserError
from dalsegno.steps.contract import Work
from dalsegno.steps.fields import Fields
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.python import import_path
from dalsegno.steps.supervision import Job

#: JSON is YAML as well, which is what papermill reads.
PARAMETERS_FILE = "parameters.yaml"
OUTPUT_NOTEBOOK = "notebook.ipynb"


class NotebookRunner(ProcessRunner):
    """``notebook: {input_path: …, parameters: …}``."""

    name: ClassVar[str] = "Notebook"

    def job(self, work: Work) -> Job:
        fields = Fields(work, "notebook")
        notebook, target = fields.source("input_path"), fields.path("output_path")
        parameters = fields.mapping("parameters")
        refuse_secrets(parameters, work)
        missing = [name for name in ("papermill", "ipykernel") if find_spec(name) is None]
        if missing:
            raise UserError(
                f"Notebooks need {' and '.join(missing)}, which this Python does not have.",
                hint="pip install 'dalsegno[notebook]'",
            )
        folder = fields.folder()
        # For the kernel's sockets, whose paths must be short: outside of the attempt's folder, so it is removed apart.
        runtime_folder = Path(gettempdir(), f"dalsegno-{token_hex(8)}")
        return command_job(
            work,
            "notebook",
            [
                *(sys.executable, "-m", "dalsegno.steps.notebook_job"),
                *(str(notebook.runnable(work.folder)), str(prepared(target, work))),
                *("--parameters_file", str(work.folder / PARAMETERS_FILE)),
                *("--log-output", "--no-progress-bar", "--cwd", str(folder)),
                *fields.texts("papermill_arguments"),
            ],
            folder=folder,
            files={PARAMETERS_FILE: json.dumps(parameters), **notebook.copies},
            variables={**import_path(), **fields.variables(), "JUPYTER_RUNTIME_DIR": str(runtime_folder)},
            cleanup=["rm", "-rf", str(runtime_folder)],
        )


def prepared(target: Path | None, work: Work) -> Path:
    """Where the notebook with its results goes."""
    if target is None:
        return work.folder / OUTPUT_NOTEBOOK
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def refuse_secrets(parameters: dict[str, Any], work: Work) -> None:
    """papermill writes parameters into the notebook that it keeps."""
    text = json.dumps(parameters, ensure_ascii=False)
    for secret in work.secrets:
        if secret and json.dumps(secret, ensure_ascii=False)[1:-1] in text:
            raise UserError(
                "notebook.parameters hold the value of a secret, which would be saved in the notebook.",
                hint="Let the notebook ask for it: from dalsegno import job; job.param(…)",
            )
