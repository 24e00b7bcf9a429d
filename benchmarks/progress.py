"""What a benchmark says while it runs."""

from __future__ import annotations

import os
import time


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def warn_if_busy() -> None:
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        say("other programs keep this machine busy: expect times that are too long")
