"""What users may import, and what starting the command must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dalsegno


def test_public_names() -> None:
    assert sorted(dalsegno.__all__) == [
        "Changes",
        "DalsegnoError",
        "DataError",
        "Lake",
        "PlatformError",
        "Settings",
        "UserError",
        "__version__",
    ]
    for name in dalsegno.__all__:
        assert getattr(dalsegno, name) is not None


@pytest.mark.parametrize(
    ("command", "needed"), [("--help", []), ("runs", ["sqlalchemy"]), ("work", ["sqlalchemy"]), ("completion bash", [])]
)
def test_commands_wait_for_nothing_slow(command: str, needed: list[str], tmp_path: Path) -> None:
    """Time differs between machines; what makes it long does not."""
    # The first use of a store makes its tables, which alone needs Alembic.
    subprocess.run([sys.executable, "-c", "from dalsegno.cli import main; main()", "runs"], cwd=tmp_path, check=True)
    code = (
        f"import sys; sys.argv = ['dalsegno', *{command.split()}]\n"
        "from dalsegno.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('SLOW', sorted({m.split('.')[0] for m in sys.modules} "
        "& {'pyiceberg', 'pyarrow', 'sqlalchemy', 'alembic', 'pyspark', 'fastavro', 'rich'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip().splitlines()[-1] == f"SLOW {needed}"
