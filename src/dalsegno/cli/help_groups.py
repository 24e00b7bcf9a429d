"""The commands in ``dalsegno --help``, under headings. Rich would print them prettier, and three times slower."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

#: Every command has one place. What one needs first comes first.
GROUPS = {
    "Capture changes": ("plan", "capture", "query", "commit", "abandon", "captures", "checkpoints"),
    "Workflows and runs": (
        "validate",
        "rewrite",
        "format",
        "push",
        "run",
        "workflows",
        "versions",
        "cat",
        "delete",
        "templates",
        "trigger",
        "signal",
    ),
    "Look at runs and results": ("runs", "show", "watch", "logs", "refreshes", "sql", "history", "audit", "eval"),
    "When things fail": (
        "restart",
        "stop",
        "kill",
        "skip",
        "pause",
        "resume",
        "breakpoints",
        "writes",
        "resolve",
        "undo",
    ),
    "Run a service": ("server", "work", "limits", "spark", "backup", "clean", "drop"),
    "Set up": ("init", "import", "catalogs", "schema", "completion"),
}


class GroupedCommands(TyperGroup):
    """The root command."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        widest = max(map(len, self.commands))
        for heading, names in GROUPS.items():
            helps = [self.commands[name].get_short_help_str(formatter.width - widest - 6) for name in names]
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), line) for name, line in zip(names, helps, strict=True)])
