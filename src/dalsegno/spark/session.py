"""What Spark needs on this machine to have Iceberg in it: Java, jars, environment and settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dalsegno.errors import UserError
from dalsegno.spark.cache import cache_folder
from dalsegno.spark.jars import Jar, fetch, iceberg_runtime
from dalsegno.spark.java import Java, find_java

LOOPBACK = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties")


def runtime(packages: Sequence[str]) -> tuple[Java, list[Path]]:
    """A Java and the jars of Iceberg and of `packages`; what is missing is fetched."""
    version = installed_spark()
    java = find_java()
    bundles = sum("-bundle:" in name for name in packages)
    what = f"the Iceberg runtime for Spark {version}, and what catalogs need (about {60 + 70 * bundles} MB)"
    return java, fetch([Jar.parse(name) for name in (iceberg_runtime(version), *packages)], java, what=what)


def installed_spark() -> str:
    try:
        import pyspark  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UserError("PySpark is not installed.", hint="Type: pip install 'dalsegno[spark]'") from error
    return pyspark.__version__


def spark_environment(java: Java) -> dict[str, str]:
    """What Spark reads from the environment of the process that starts it, and from nowhere else."""
    return {
        "JAVA_HOME": str(java.home),
        # Otherwise Python workers are whatever `python3` is on PATH, without our packages.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Otherwise Spark looks up the host name, and warns or fails where that leads nowhere.
        "SPARK_LOCAL_IP": LOOPBACK,
    }


def iceberg_conf(jars: Sequence[Path]) -> dict[str, str]:
    """What any Spark needs for Iceberg."""
    return {
        "spark.jars": ",".join(str(path) for path in jars),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        # Spark's own default, and the names of Azure's keys: what fits is not shown in its pages, logs and SET.
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|credential|[.]key$|connection-string",
    }


def defaults(jars: Sequence[Path], cores: int) -> dict[str, str]:
    """What a Spark on this machine needs for Iceberg, and for being quick and quiet."""
    return {
        **iceberg_conf(jars),
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={LOGGING.as_uri()}"',
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # 200, the default, is for clusters: on a laptop each of the small tasks costs more than it does.
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        # By default a folder appears wherever the process was started.
        "spark.sql.warehouse.dir": (cache_folder() / "spark-warehouse").as_uri(),
    }
