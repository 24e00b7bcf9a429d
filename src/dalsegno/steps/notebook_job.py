"""The process of a notebook step: papermill's own command, with a kernel that is spoken to through files.

By default it is spoken to through ports of this machine, where others can listen to what a notebook prints.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from papermill.__main__ import papermill
from papermill.engines import NBClientEngine, papermill_engines
from traitlets import Unicode, default

ENGINE = "dalsegno"


class LocalKernelManager(AsyncKernelManager):
    transport = Unicode("ipc")

    @default("connection_file")
    def _own_file(self) -> str:
        """Beside it are the sockets."""
        return str(Path(os.environ["JUPYTER_RUNTIME_DIR"], "kernel.json"))


class LocalEngine(NBClientEngine):  # type: ignore[misc] # it has no types
    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
        return super().execute_managed_notebook(nb_man, kernel_name, kernel_manager_class=LocalKernelManager, **options)


def main() -> None:
    Path(os.environ["JUPYTER_RUNTIME_DIR"]).mkdir(mode=0o700)
    papermill_engines.register(ENGINE, LocalEngine)
    papermill(["--engine", ENGINE, *sys.argv[1:]], prog_name="papermill")


if __name__ == "__main__":
    main()
