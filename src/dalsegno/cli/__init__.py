"""The command line: every verb of ``operations``, for people and, with ``--json``, for machines.

app         the commands
output      exit codes, errors, JSON
terminal    what a terminal gets to see
text        what people read
evaluating  expressions, one or many
auditing    the audit, and what people read of it
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

#: Set by a shell that wants to know how a command line may go on.
COMPLETE = "_DALSEGNO_COMPLETE"


def main() -> None:
    """The entry point of the ``dalsegno`` command."""
    from dalsegno.cli.app import app  # noqa: PLC0415 - importing this package must cost nothing
    from dalsegno.cli.terminal import protect_terminal  # noqa: PLC0415

    for stream in (sys.stdout, sys.stderr):
        # A text that the terminal's encoding cannot show is no reason to show nothing.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415 - only a shell that completes needs it

        completion_init()
    protect_terminal()
    app(prog_name="dalsegno")
