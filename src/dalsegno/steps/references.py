"""``${name}`` in a shell script: handed over as variables, because a value pasted into a script can become code.

A variable of the shell can be used wherever its name stands, whatever it holds; only where it is not in double quotes,
the shell splits it into words, as it does with all variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: ``${a}``, ``${step.a}``, ``${step.a('t')}`` or ``$a``, unless a backslash stands before it.
_REFERENCE = re.compile(r"(?<!\\)\$(?:\{([\w.-]+(?:\([^{}]*\))?)\}|([A-Za-z_]\w*))", re.ASCII)
_SHELL_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
#: Names that mean something to a shell, the loader or us: a value must not change that.
_TAKEN = re.compile(
    r"(?:LD|DYLD|BASH|COMP|DALSEGNO|LC|PYTHON|JAVA|HIST)_?\w*"
    r"|PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|TMPDIR|LANG|TZ|TERM|IFS|ENV|CDPATH|PS[0-4]|PROMPT_COMMAND|SHELLOPTS"
    r"|GLOBIGNORE|FIGNORE|EXECIGNORE|FUNCNEST|POSIXLY_CORRECT|IGNOREEOF|INPUTRC|OPTARG|OPTIND|OPTERR|REPLY|MAPFILE"
    r"|UID|EUID|GROUPS|PPID|RANDOM|SRANDOM|SECONDS|EPOCH\w*|LINENO|SHLVL|HOSTNAME|HOSTTYPE|OSTYPE|MACHTYPE|DIRSTACK"
    r"|FUNCNAME|PIPESTATUS|COLUMNS|LINES|TIMEFORMAT|TMOUT|COPROC|READLINE_\w+|CHILD_MAX|NODE_OPTIONS|PERL5\w*|RUBY\w*"
    r"|histchars|auto_resume|_",
    re.ASCII,
)
_QUOTED = re.compile(r"\\.|\"(?:\\.|[^\"\\])*\"|(?:^|(?<=\s))#[^\n]*|'([^']*)'", re.DOTALL | re.MULTILINE)


def is_taken(name: str) -> bool:
    """Whether a variable of this name means something to a shell, the loader or us."""
    return _TAKEN.fullmatch(name) is not None


def as_variables(script: str, references: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The script, with references that are no names of variables renamed; and the variables."""
    renamed = {
        name: f"DALSEGNO_REFERENCE_{number}"
        for number, name in enumerate(sorted(references))
        if not _SHELL_NAME.fullmatch(name) or is_taken(name)
    }

    def rewritten(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return f"${{{renamed[name]}}}" if name in renamed else found[0]

    variables = {renamed.get(name, name): value for name, value in references.items()}
    return _REFERENCE.sub(rewritten, script), variables


def unreplaced(script: str, references: Mapping[str, str]) -> list[str]:
    """The references in single quotes, as far as can be told without being a shell: it leaves them as they are."""
    return [
        reference[0]
        for quoted in _QUOTED.finditer(script)
        for reference in _REFERENCE.finditer(quoted[1] or "")
        if (reference[1] or reference[2]) in references
    ]
