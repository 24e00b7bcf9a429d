"""Steps that run a Java program: a jar, or a class of a class path."""

from __future__ import annotations

import os
from typing import ClassVar

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.java import candidates
from dalsegno.steps.contract import Work
from dalsegno.steps.environment import inherited
from dalsegno.steps.fields import Fields, allowed_path
from dalsegno.steps.processes import ProcessRunner, command_job
from dalsegno.steps.supervision import Job


class JavaRunner(ProcessRunner):
    """``java: {jar: …}``, or ``main_class`` with a ``classpath``."""

    name: ClassVar[str] = "Java"

    def job(self, work: Work) -> Job:
        fields = Fields(work, "java")
        main_class = fields.text("main_class") or fields.text("class")
        class_path = [str(allowed_path(part, work.settings, "java.classpath")) for part in fields.texts("classpath")]
        jar = str(fields.file("jar")) if fields.text("jar") else None
        if main_class:
            if main_class.startswith("-"):
                raise UserError(f"java.main_class is {main_class!r}, expected the name of a class.")
            class_path = [*([jar] if jar else []), *class_path]
            program = [*(["-classpath", os.pathsep.join(class_path)] if class_path else []), main_class]
        elif jar:
            program = ["-jar", jar]
        else:
            raise UserError("java needs a jar, or a main_class.")
        variables = fields.variables()
        return command_job(
            work,
            "java",
            [java_executable(inherited(work) | variables), *fields.texts("jvm_args"), *program, *fields.texts("args")],
            folder=fields.folder(),
            variables=variables,
        )


def java_executable(environment: dict[str, str]) -> str:
    """The Java of JAVA_HOME, else of PATH, else of the ``java`` extra; of any version, since only Spark is picky."""
    seen: list[str] = []
    for java in candidates(environment, seen):
        return str(java.executable)
    raise PlatformError(
        f"A Java step needs Java; {'; '.join(seen)}.",
        hint="Install one and set JAVA_HOME to it, or type: pip install 'dalsegno[java]'",
    )
