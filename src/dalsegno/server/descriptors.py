"""File descriptors: how many of them connections may take. The others are for the store and for runs."""

from __future__ import annotations

import resource

#: More than anybody needs here. Some programs that we start take a time that grows with the limit.
_ENOUGH = 65536
_SHARE = 4
_FEWEST, _MOST = 16, 1000


def raise_descriptor_limit() -> None:
    """As far as this process may; by default many systems let one open 1024 files, although it may ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            # macOS has a lower limit than it says.
            return


def connection_limit() -> int:
    """How many connections may be open at once: a quarter of all descriptors, and 1000 at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST if soft == resource.RLIM_INFINITY else soft // _SHARE
    return min(max(allowed, _FEWEST), _MOST)
