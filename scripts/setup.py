"""Make .venv hold exactly what a lock file names: `python3 scripts/setup.py demo` or `... dev`.

Runs before anything is installed, so it uses the standard library only. It does nothing, quickly,
when the lock files are the ones of the last time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "dalsegno-setup.txt"
PYTHON = VENV / "bin" / "python"
OLDEST_PYTHON = (3, 11)
HEARTBEAT_SECONDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", choices=["demo", "dev"])
    wanted: str = parser.parse_args().wanted
    if sys.version_info < OLDEST_PYTHON:
        found = sys.version.split()[0]
        sys.exit(f"dalsegno needs Python 3.11 or newer, this is {found}. Try: make PYTHON=python3.12")
    installed = STAMP.read_text().split() if STAMP.exists() else ["nothing"]
    # Development holds all that the demo needs; do not take it away from someone who runs both.
    if installed[0] == "dev":
        wanted = "dev"
    if installed != [wanted, digest(wanted)]:
        install(wanted)


def install(wanted: str) -> None:
    STAMP.unlink(missing_ok=True)
    if not PYTHON.exists():
        say("Creating .venv")
        run(sys.executable, "-m", "venv", str(VENV), hint="On Debian and Ubuntu: apt install python3-venv")
    say("Fetching the installer (uv, 20 MB)")
    run(str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes",
        "--requirement", lock("bootstrap"))  # fmt: skip
    say("Fetching the dependencies. PySpark alone is a 455 MB source archive that is unpacked and built here:")
    say("the first time takes a minute or more, later ones come from uv's cache.")
    uv("sync", "--require-hashes", "--build-constraints", lock("build"), lock(wanted))
    uv("install", "--quiet", "--no-deps", "--build-constraints", lock("build"), "--editable", str(ROOT))
    STAMP.write_text(f"{wanted} {digest(wanted)}\n")
    say("Ready.")


def digest(wanted: str) -> str:
    import tomllib  # noqa: PLC0415 - a Python too old to have it must reach the message in main()

    content = hashlib.sha256()
    for name in ["bootstrap", "build", wanted]:
        content.update(Path(lock(name)).read_bytes())
    # Only this part of the file changes what is installed; the rest is settings of tools.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    content.update(json.dumps(project, sort_keys=True).encode())
    return content.hexdigest()


def lock(name: str) -> str:
    return str(ROOT / "requirements" / f"{name}.txt")


def uv(verb: str, *arguments: str, python: Path = PYTHON, hint: str | None = None) -> None:
    run(
        str(VENV / "bin" / "uv"),
        "pip",
        verb,
        "--python",
        str(python),
        *arguments,
        environment=uv_environment(),
        hint=hint,
    )


def uv_environment() -> Mapping[str, str]:
    """The environment, with pip's settings under the names that uv knows: uv itself does not read them."""
    told = pip_settings()
    theirs = {
        "UV_DEFAULT_INDEX": told.get("index-url"),
        "UV_INDEX": told.get("extra-index-url"),
        "SSL_CERT_FILE": told.get("cert"),
        # A company's own authority is in the system's store, which pip asks and uv by default does not.
        "UV_SYSTEM_CERTS": "true" if ssl.get_default_verify_paths().capath else None,
    }
    return {**{name: value for name, value in theirs.items() if value}, **os.environ}


def pip_settings() -> dict[str, str]:
    """What the user told pip, in its configuration files or, stronger, by variables."""
    command = [str(PYTHON), "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    settings: dict[str, str] = {}
    for section in ["global", "install", ":env:"]:
        for key, value in re.findall(rf"^{section}\.([a-z-]+)='(.*)'$", listing, re.MULTILINE):
            settings[key] = value.replace(r"\n", " ").strip()
    return settings


def run(*command: str, environment: Mapping[str, str] | None = None, hint: str | None = None) -> None:
    """Run to the end; where no terminal shows the child's own progress, say now and then that it is alive."""
    started = time.monotonic()
    with subprocess.Popen(command, env=environment) as child:
        while True:
            try:
                status = child.wait(timeout=HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if not sys.stderr.isatty():
                    say(f"... still at it after {time.monotonic() - started:.0f} s")
    if status != 0:
        advice = f"\n{hint}" if hint else ""
        sys.exit(f"Set-up stopped: this command ended with status {status}:\n  {' '.join(command)}{advice}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
