"""What users may import, and what starting the command must not import."""

from __future__ import annotations

import subprocess
import sys

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


def test_help_waits_for_nothing_slow() -> None:
    """Time differs between machines; what makes it long does not."""
    code = (
        "import sys; sys.argv = ['dalsegno', '--help']\n"
        "from dalsegno.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('SLOW', sorted({m.split('.')[0] for m in sys.modules} "
        "& {'pyiceberg', 'pyarrow', 'sqlalchemy', 'alembic', 'pyspark', 'fastavro', 'rich'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "SLOW []"
