"""Container steps: with a real engine and an image made here, if there is one that works; else what they would run."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dalsegno.clock import utc_now
from dalsegno.model.outcomes import FailureKind, Stopped
from dalsegno.settings import Settings
from dalsegno.steps.container import ContainerRunner, container_name
from dalsegno.steps.contract import Work
from tests.steps.support import attempt, failure, finished, log_text, outputs, until
from tests.store.examples import capture

CONTAINER = ContainerRunner()
IMAGE = "localhost/dalsegno-test:latest"
#: For machines that do not let a container have more files and processes open than they have themselves.
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
runtime = "runc"
"""


# With a real engine.


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An engine that can run an image of one static busybox, which needs no registry."""
    busybox = shutil.which("busybox")
    libraries = b"" if busybox is None else subprocess.run(["ldd", busybox], capture_output=True, check=False).stdout
    if busybox is None or b"=>" in libraries:
        pytest.skip("there is no static busybox to make an image of")
    folder = tmp_path_factory.mktemp("containers")
    (folder / "containers.conf").write_text(CONFIGURATION)
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("runc"):
            patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        problems = []
        for name in ("docker", "podman"):
            if shutil.which(name) is None:
                problems.append(f"there is no {name}")
                continue
            subprocess.run([name, "import", "-", IMAGE], input=image(busybox), capture_output=True, check=False)
            command = [name, "run", "--rm", IMAGE, "/bin/true"]
            tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            if tried.returncode == 0:
                yield name
                subprocess.run([name, "rmi", "--force", IMAGE], capture_output=True, check=False)
                return
            problems.append(f"{name}: {tried.stderr.strip()}")
    pytest.skip("; ".join(problems))


def image(busybox: str) -> bytes:
    """A root folder as a tar file."""
    content = Path(busybox).read_bytes()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = len(content), 0o755
        tar.addfile(program, io.BytesIO(content))
        for name in ("sh", "echo", "sleep", "cat", "id", "true", "pwd", "env", "ls"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        temporary = tarfile.TarInfo("tmp")
        temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(temporary)
    return file.getvalue()


def containers(engine: str, work: Work) -> str:
    command = [engine, "ps", "--all", "--quiet", "--filter", f"name={container_name(work)}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_container(engine: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in").write_text("from outside\n")
    script = (
        'echo "$1 $MINE"; pwd; cat /data/in /dalsegno/params.json; id -u; echo rows=3 >> "$DALSEGNO_OUTPUT"; '
        '[ "$DALSEGNO_CAPTURES" = /dalsegno/captures.json ]; cat "$DALSEGNO_CAPTURES" > /dev/null'
    )
    block = {
        "image": IMAGE,
        "command": ["/bin/sh", "-ec", script],
        "args": ["name", "a b"],
        "env": {"MINE": "hunter2\nx"},
        "volumes": ["./data:/data:ro"],
        "workdir": "/tmp",
        "user": "1000",
    }
    params = {"container": block, "day": "monday"}
    work = attempt(tmp_path, params, secrets=("hunter2",), captures=(capture(),), place="write")
    assert outputs(CONTAINER, work) == {"rows": "3"}
    assert log_text(work).replace("\r", "") == 'a b ***\nx\n/tmp\nfrom outside\n{"day": "monday"}1000\n'
    assert not containers(engine, work)
    assert not (work.folder / "shared" / "params.json").exists()


def test_a_container_that_fails(engine: str, tmp_path: Path) -> None:
    block = {"image": IMAGE, "command": ["/bin/sh", "-c", "echo oops; exit 3"]}
    work = attempt(tmp_path, {"container": block})
    failed = failure(CONTAINER, work)
    assert failed.kind is FailureKind.USER
    assert "exit code 3" in failed.message
    assert not containers(engine, work)


@pytest.mark.usefixtures("engine")
def test_an_image_that_is_not_there(tmp_path: Path) -> None:
    failed = failure(CONTAINER, attempt(tmp_path, {"container": {"image": "localhost/no-such-image"}}))
    assert (failed.kind, "exit code 125" in failed.message) == (FailureKind.PLATFORM, True)


SLEEP = {"image": IMAGE, "command": ["/bin/sh", "-c", "trap '' TERM; echo ready; while true; do sleep 1; done"]}


def test_cancelling_removes_the_container(engine: str, tmp_path: Path) -> None:
    work = attempt(tmp_path, {"container": SLEEP})
    CONTAINER.start(work)
    until(lambda: "ready" in log_text(work))
    assert containers(engine, work)
    CONTAINER.cancel(work)
    assert not containers(engine, work)
    assert isinstance(finished(CONTAINER, work), Stopped)


def test_the_deadline_removes_the_container(engine: str, tmp_path: Path) -> None:
    work = attempt(tmp_path, {"container": SLEEP}, deadline=utc_now() + timedelta(seconds=5))
    assert failure(CONTAINER, work).kind is FailureKind.TIMEOUT
    assert not containers(engine, work)


def test_a_vanished_supervisor_leaves_no_container(engine: str, tmp_path: Path) -> None:
    work = attempt(tmp_path, {"container": SLEEP})
    started = CONTAINER.start(work)
    until(lambda: "ready" in log_text(work))
    os.kill(started.handle["pid"], 9)  # type: ignore[union-attr]
    failed = failure(CONTAINER, work)
    assert (failed.kind, "vanished" in failed.message) == (FailureKind.PLATFORM, True)
    assert not containers(engine, work)


# Without one.


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `podman` that tells what it is given."""
    (tmp_path / "bin").mkdir()
    script = '#!/bin/sh\n[ "$1" = version ] || { printf "%s\\n" "$@"; }\n'
    (tmp_path / "bin" / "podman").write_text(script)
    (tmp_path / "bin" / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


@pytest.mark.usefixtures("pretended")
def test_what_is_run(tmp_path: Path) -> None:
    block = {
        "image": "registry.example.com/team/job:1@sha256:abc",
        "command": ["run", "x"],
        "args": ["--flag", "; rm"],
        "env": {"PASSWORD": "hunter2"},
        "volumes": ["cache:/cache"],
        "cpu": 2,
        "memory": "1g",
        "network": "none",
        "engine": "podman",
    }
    work = attempt(tmp_path, {"container": block})
    outputs(CONTAINER, work)
    words = log_text(work).splitlines()
    assert words[0] == "run"
    assert words[-4:] == ["registry.example.com/team/job:1@sha256:abc", "x", "--flag", "; rm"]
    options = set(words[1:-4])
    assert options >= {
        f"--name={container_name(work)}",
        f"--label=dalsegno.key={work.key}",
        "--env=PASSWORD",
        "--env=DALSEGNO_OUTPUT",
        f"--volume={work.folder}/shared:/dalsegno",
        "--volume=cache:/cache",
        "--cpus=2",
        "--memory=1g",
        "--network=none",
        "--entrypoint=run",
    }
    assert "hunter2" not in log_text(work)


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({}, "container.image is needed"),
        ({"image": "--privileged"}, "expected the name of an image"),
        ({"image": "a b"}, "expected the name of an image"),
        ({"image": "a", "volumes": ["/etc:/etc"]}, "is outside of"),
        ({"image": "a", "volumes": ["../x:/x"]}, "is outside of"),
        ({"image": "a", "volumes": ["x"]}, "expected SOURCE:/TARGET"),
        ({"image": "a", "volumes": ["x:/y:ro:/etc"]}, "expected SOURCE:/TARGET"),
        ({"image": "a", "engine": "rkt"}, "expected one of docker, podman"),
        ({"image": "a", "privileged": True}, "no field container.privileged"),
    ],
)
def test_refusals(tmp_path: Path, block: dict[str, Any], says: str) -> None:
    failed = failure(CONTAINER, attempt(tmp_path, {"container": block}))
    assert (failed.kind, says in failed.message) == (FailureKind.FATAL, True), failed


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    failed = failure(CONTAINER, attempt(tmp_path, {"container": {"image": "a"}}, settings=Settings(root=tmp_path)))
    assert failed.kind is FailureKind.PLATFORM
    assert failed.message == "A Container step needs docker or podman; there is no docker, there is no podman."
