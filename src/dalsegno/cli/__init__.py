"""The command line: every verb of ``operations``, for people and, with ``--json``, for machines.

app       the commands
output    exit codes, errors, JSON
text      what people read
"""

from __future__ import annotations


def main() -> None:
    """The entry point of the ``dalsegno`` command."""
    from dalsegno.cli.app import app  # noqa: PLC0415 - importing this package must cost nothing

    app(prog_name="dalsegno")
