"""The command line of ``spark-submit``, for jobs that need a driver of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from dalsegno.errors import PlatformError, UserError

#: Run by Spark with the name of a file of statements.
SQL_DRIVER = Path(__file__).with_name("submitted_sql.py")


def submit_command(
    properties: Path,
    file: str,
    args: Sequence[str],
    *,
    main_class: str | None = None,
    deploy_mode: str | None = None,
    packages: Sequence[str] = (),
    files: Sequence[str] = (),
) -> list[str]:
    """Run ``file``, a script or a jar. Configuration is in a file, because arguments can be read by others."""
    options: Mapping[str, str | None] = {
        "--properties-file": str(properties),
        "--class": main_class,
        "--deploy-mode": deploy_mode,
        "--packages": ",".join(packages) or None,
        "--files": ",".join(files) or None,
    }
    chosen = [word for name, value in options.items() if value is not None for word in (name, value)]
    return [str(spark_home() / "bin" / "spark-submit"), *chosen, file, *args]


def spark_home() -> Path:
    """Where PySpark has the whole of Spark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UserError("PySpark is not installed.", hint="Type: pip install 'dalsegno[spark]'")
    home = Path(spec.origin).parent
    if not (home / "bin" / "spark-submit").exists():
        raise PlatformError("This PySpark cannot submit: it is the client only.", hint="Type: pip install pyspark")
    return home
