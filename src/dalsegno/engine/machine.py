"""Which machine this is, and which processes of it live."""

from __future__ import annotations

import os
import socket
from pathlib import Path

#: How a process stands that is gone, but that nobody has asked about yet.
_ENDED = ("Z", "X")


def machine_name(name: str | None = None) -> str:
    """The host, or what it is called in the settings; with the namespace of its processes, which containers that have
    the name of their host do not share.
    """
    try:
        namespace = f" {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        namespace = ""
    return f"{name or socket.gethostname()}{namespace}"


def boot_of(began: str) -> str:
    """Of what ``process_began`` says: since which start of the machine."""
    return began.partition(" ")[0]


def process_began(process: int) -> str:
    """When a process began, by the machine's own count; empty if there is none of this number, or it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (FileNotFoundError, ProcessLookupError):
        return _without_proc(process)
    # The name of the program may hold blanks and parentheses; the fields behind it do not.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else f"{boot} {fields[19]}"


def _without_proc(process: int) -> str:
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "alive"
    return "alive"
