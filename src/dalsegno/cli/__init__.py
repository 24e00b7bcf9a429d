"""The command line: every verb of ``operations``, for people and, with ``--json``, for programs.

app          the commands of captures, checkpoints and catalogs; every other file of commands registers with it
help_groups  the headings of --help
completion   names that a shell completes
output       exit codes, errors, JSON
text, plan_text, run_text   what people read
tables, times, colours      lists, local times and colours in it
terminal     what a terminal gets to see: no control characters from outside
evaluating   expressions, one or many
auditing     the audit, and what people read of it
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
        # A character that the encoding cannot show must not keep the rest from being shown.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if COMPLETE in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415 - only a shell that completes needs it

        completion_init()
    protect_terminal()
    app(prog_name="dalsegno")
