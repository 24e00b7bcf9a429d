"""``make bench-declared``: what declared tables cost beside a lookback, the same by hand, and full refreshes.

The playback pipeline on the data of ``make bench-pipeline``, and the queries of TPC-H. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import declared_playback, declared_tpch
from benchmarks.progress import warn_if_busy


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.declared", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["playback", "tpch"])
    parser.add_argument("--rows", type=int, default=declared_playback.ROWS, help="of playback events")
    parser.add_argument("--days", type=int, default=declared_playback.DAYS, help="of the history of playback events")
    parser.add_argument("--runs", type=int, default=declared_playback.RUNS, help="how many days pass")
    parser.add_argument("--scale", type=float, default=declared_tpch.SCALE, help="scale factor of TPC-H")
    parser.add_argument("--rounds", type=int, default=declared_tpch.ROUNDS, help="how often orders come and go")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where to make the tables, for a while")
    options = parser.parse_args(arguments)
    warn_if_busy()
    options.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    if options.only != "tpch":
        with TemporaryDirectory(prefix="bench-declared-", dir=options.folder) as name:
            folder = Path(name).resolve()
            found |= declared_playback.measure(folder, rows=options.rows, days=options.days, runs=options.runs)
    if options.only != "playback":
        with TemporaryDirectory(prefix="bench-declared-", dir=options.folder) as name:
            results = declared_tpch.measured(Path(name).resolve(), options.scale, rounds=options.rounds)
        print(declared_tpch.report(results))
        found |= results.as_json()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
