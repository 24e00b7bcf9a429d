"""Which variables of our own environment jobs get."""

from __future__ import annotations

from fnmatch import fnmatchcase

from dalsegno.settings import Settings

#: What every job gets from our own environment. The setting ``pass_environment`` adds to it.
INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "JAVA_HOME"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
)


def is_inherited(name: str, settings: Settings) -> bool:
    """Whether jobs get an environment variable of this name from us."""
    return any(fnmatchcase(name, pattern) for pattern in (*INHERITED, *settings.pass_environment))
