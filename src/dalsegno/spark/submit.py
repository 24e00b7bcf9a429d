"""The command line of ``spark-submit``, for jobs that need a driver of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dalsegno.errors import PlatformError, UserError

_SQL_DRIVER = Path(__file__).with_name("submitted_sql.py")


def sql_driver(statements: Sequence[Mapping[str, Any]]) -> str:
    """A program that executes statements, in one file: no cluster manager has another way to hand it the statements."""
    call = f"main(json.loads({json.dumps(statements)!r}))"
    return f"{_SQL_DRIVER.read_text(encoding='utf-8')}\n\nimport json\n\n{call}\n"


def submit_command(
    properties: Path,
    file: str,
    args: Sequence[str],
    *,
    main_class: str | None = None,
    deploy_mode: str | None = None,
    packages: Sequence[str] = (),
    files: Sequence[str] = (),
    python_files: Sequence[str] = (),
) -> list[str]:
    """Run ``file``, a script or a jar. Configuration is in a file, because arguments can be read by others."""
    options: Mapping[str, str | None] = {
        "--properties-file": str(properties),
        "--class": main_class,
        "--deploy-mode": deploy_mode,
        "--packages": ",".join(packages) or None,
        "--files": ",".join(files) or None,
        "--py-files": ",".join(python_files) or None,
    }
    chosen = [word for name, value in options.items() if value is not None for word in (name, value)]
    return [str(spark_home() / "bin" / "spark-submit"), *chosen, file, *args]


def program_command(main_class: str, words: Sequence[str], conf: Mapping[str, str]) -> list[str]:
    """Run a Java program of Spark's own jars on this machine, logged in as a submission with this configuration."""
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    submit = str(spark_home() / "bin" / "spark-submit")
    return [submit, "--master", "local", "--class", main_class, *options, "spark-internal", *words]


def spark_home() -> Path:
    """Where PySpark has the whole of Spark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UserError("PySpark is not installed.", hint="Type: pip install 'dalsegno[spark]'")
    home = Path(spec.origin).parent
    if not (home / "bin" / "spark-submit").exists():
        raise PlatformError("This PySpark cannot submit: it is the client only.", hint="Type: pip install pyspark")
    return home
