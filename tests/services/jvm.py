"""A JVM that tests drive through Py4J, which also ends it when this process dies, however it dies."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from dalsegno.spark.jars import ivy_jar
from dalsegno.spark.java import find_java


@contextmanager
def running_jvm(
    log: Path, class_path: Sequence[Path], options: Sequence[str] = (), java: Path | None = None
) -> Iterator[JavaGateway]:
    """A JVM with these jars, for as long as the block runs and this process lives; ``java`` starts it, if given."""
    with log.open("w") as output:
        port, token, process = launch_gateway(
            jarpath=str(next(ivy_jar().parent.glob("py4j-*.jar"))),
            classpath=os.pathsep.join(str(path) for path in class_path),
            javaopts=list(options),
            java_path=str(java or find_java().executable),
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
            # Whoever can talk to the gateway can run anything as this user.
            enable_auth=True,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
        try:
            yield gateway
        finally:
            gateway.shutdown()
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
    for pipe in [process.stdin, process.stdout]:
        if pipe is not None:
            pipe.close()


def from_pyspark(*patterns: str) -> list[Path]:
    """Jars that PySpark has already, by the beginnings of their names."""
    return [path for pattern in patterns for path in ivy_jar().parent.glob(f"{pattern}.jar")]
