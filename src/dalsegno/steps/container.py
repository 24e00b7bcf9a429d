"""Steps that run a container, by the command line of docker or podman, whichever is there.

The client is the supervised process: what the container prints goes through it, and its end is the container's. The
container has a name and labels of the attempt, by which it is removed when the job is over, however it ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from dalsegno.errors import PlatformError, UserError
from dalsegno.model.outcomes import FailureKind
from dalsegno.spec.step_types import CONTAINER_ENGINES
from dalsegno.steps.contract import Work
from dalsegno.steps.environment import OUTPUT_FILE, job_environment, job_files
from dalsegno.steps.fields import Fields, allowed_path
from dalsegno.steps.processes import TEMPORARY_FAILURE, ProcessRunner
from dalsegno.steps.supervision import Job

#: By which the clients find their server and their configuration.
CLIENT_VARIABLES = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
)
#: The folder of the attempt that a container sees, and where it sees it: parameters go in, outputs come out.
SHARED, INSIDE = "shared", "/dalsegno"
#: The exit code of both clients when a container could not be made, such as for want of its image.
CLIENT_FAILED = 125

_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@-]*", re.ASCII)
_VOLUME = re.compile(r"(?P<source>[^:]+):(?P<target>/[^:]*)(?P<options>:[a-zA-Z,]+)?")
_VOLUME_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_ANSWER_SECONDS = 30


class ContainerRunner(ProcessRunner):
    """``container: {image: …, command: […], args: […]}``."""

    name: ClassVar[str] = "Container"
    exit_codes: ClassVar[Mapping[int, FailureKind]] = {
        TEMPORARY_FAILURE: FailureKind.PLATFORM,
        CLIENT_FAILED: FailureKind.PLATFORM,
    }
    output_file: ClassVar[str] = f"{SHARED}/{OUTPUT_FILE}"

    def job(self, work: Work) -> Job:
        fields = Fields(work, "container")
        image = fields.required("image")
        if not _IMAGE.fullmatch(image):
            raise UserError(f"container.image is {image!r}, expected the name of an image.")
        variables = fields.variables()
        client = {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ}
        environment = {**client, **job_environment(work, variables)}
        for named in ("DALSEGNO_PARAMS", "DALSEGNO_CAPTURES", "DALSEGNO_OUTPUT"):
            if named in environment:
                environment[named] = f"{INSIDE}/{Path(environment[named]).name}"
        name = container_name(work)
        options = {
            "--name": [name],
            "--label": [f"dalsegno.key={work.key}", f"dalsegno.workflow={work.workflow_id}"],
            # A name alone: the value is in the client's environment, not among arguments that everybody can list.
            "--env": [*variables, *(name for name in environment if name.startswith("DALSEGNO_"))],
            "--volume": [f"{shared_folder(work)}:{INSIDE}", *(volume(text, work) for text in fields.texts("volumes"))],
            "--cpus": fields.texts("cpu"),
            "--memory": fields.texts("memory"),
            "--workdir": fields.texts("workdir"),
            "--user": fields.texts("user"),
            "--network": fields.texts("network"),
            "--entrypoint": fields.texts("command")[:1],
        }
        engine = working_engine(fields.text("engine"), environment)
        return Job(
            [
                *(engine, "run"),
                *(f"{option}={value}" for option, values in options.items() for value in values),
                *(image, *fields.texts("command")[1:], *fields.texts("args")),
            ],
            environment,
            work.settings.root,
            files={f"{SHARED}/{file}": text for file, text in job_files(work, "container").items()},
            file_mode=0o644,
            cleanup=[engine, "rm", "--force", "--volumes", name],
        )


def container_name(work: Work) -> str:
    """The attempt's own; two dalsegnos of one machine may have the same keys, but not the same folders."""
    return f"dalsegno-{work.key}-{hashlib.sha256(str(work.folder).encode()).hexdigest()[:8]}"


def shared_folder(work: Work) -> str:
    """Writable by whoever the container's user is; nobody else gets through the attempt's own folder."""
    work.folder.chmod(0o700)
    shared = work.folder / SHARED
    shared.mkdir(exist_ok=True)
    shared.chmod(0o777)
    return str(shared)


def volume(text: str, work: Work) -> str:
    """``source:/target[:options]``, where the source is a volume's name or an allowed path."""
    found = _VOLUME.fullmatch(text)
    if found is None:
        raise UserError(f"container.volumes: {text!r}, expected SOURCE:/TARGET or SOURCE:/TARGET:ro.")
    source = found["source"]
    if not _VOLUME_NAME.fullmatch(source):
        source = str(allowed_path(source, work.settings, "container.volumes"))
    return f"{source}:{found['target']}{found['options'] or ''}"


def working_engine(wanted: str | None, environment: Mapping[str, str]) -> str:
    """The client that was asked for, or the first that answers."""
    if wanted is not None and wanted not in CONTAINER_ENGINES:
        raise UserError(f"container.engine is {wanted!r}, expected one of {', '.join(CONTAINER_ENGINES)}.")
    seen = []
    for name in [wanted] if wanted else CONTAINER_ENGINES:
        program = shutil.which(name, path=environment.get("PATH"))
        if program is None:
            seen.append(f"there is no {name}")
            continue
        try:
            # Asked for its version, docker says whether its server answers; podman has none.
            command = [program, "version"]
            subprocess.run(command, env=environment, capture_output=True, check=True, timeout=_ANSWER_SECONDS)
        except (OSError, subprocess.SubprocessError):
            seen.append(f"{name} does not answer")
        else:
            return program
    raise PlatformError(f"A Container step needs docker or podman; {', '.join(seen)}.", hint="Install or start one.")
