"""Processes that tests start and kill.

Forking the test's own process would copy its connections and threads. The server these are forked from has loaded what
all of them need, pytest included, which would otherwise be imported by each. There is one server, and so one list.
"""

from __future__ import annotations

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "pytest",
        "psycopg",
        "pyiceberg.catalog.sql",
        "pyiceberg.io.pyarrow",
        "tests.store.crashes",
        "tests.store.examples",
        "tests.iceberg.dying",
        "tests.steps.dying",
        "tests.engine.dying",
        "tests.operations.dying",
        "tests.engine.sharing",
        "tests.acceptance.burning",
        "tests.exact.worker",
        "tests.chaos.node",
        "dalsegno.steps.shell",
        "dalsegno.steps.incremental",
    ]
)
