"""Applications on YARN: which one was submitted, whether it still runs, how it ended, and how to end it.

Hadoop's own command line answers. It is among PySpark's jars, and ``spark-submit`` starts it: so it finds the cluster
by the same variables, and logs in as the submission did. Each question takes a JVM, some four seconds.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dalsegno.errors import PlatformError, UserError
from dalsegno.spark.java import find_java, java_environment
from dalsegno.spark.session import spark_environment
from dalsegno.spark.submit import program_command

#: Where Hadoop's configuration is; Spark looks at both, in this order.
CONF_VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
#: What a client of a cluster reads from its environment.
VARIABLES = (*CONF_VARIABLES, "HADOOP_USER_NAME", "KRB5_CONFIG", "KRB5CCNAME")
#: How it logs in, if not by a ticket.
LOGIN = ("spark.kerberos.principal", "spark.kerberos.keytab")

_APPLICATIONS = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
#: Hadoop's own patience is a quarter of an hour.
_CONNECT_SECONDS, _ANSWER_SECONDS, _GONE_SECONDS = 5.0, 120.0, 120.0
#: How long after the end of an application that was killed its driver may live: a NodeManager hears of it by its next
#: heartbeat, then asks the driver to end, and kills it.
_LAST_BREATH_SECONDS = 10.0
_DEFAULT_PORT = 8032
_ID = re.compile(r"application_\d+_\d+")
_REFERENCE = re.compile(r"\$\{([^}]+)\}")
#: In what Hadoop prints of an application, one line for each fact, of which this may have several.
_DIAGNOSTICS = re.compile(r"^\tDiagnostics : (.*?)(?=^\t[A-Z][\w -]* : |\Z)", re.MULTILINE | re.DOTALL)
_ENDED = ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class Application:
    id: str
    #: As YARN calls it, such as ``RUNNING``.
    state: str
    final_state: str

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED

    def outlive(self) -> None:
        """Wait until nothing is left of an application that has ended, as far as YARN says when that is."""
        if self.state == "KILLED":
            time.sleep(_LAST_BREATH_SECONDS)

    @property
    def has_succeeded(self) -> bool:
        return self.state == "FINISHED" and self.final_state == "SUCCEEDED"


@dataclass(frozen=True)
class YarnClient:
    """What a client needs to know to talk to a cluster; plain JSON as ``as_json``, without secrets."""

    environment: Mapping[str, str]
    login: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {"environment": dict(self.environment), "login": dict(self.login)}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> YarnClient:
        return cls(stored["environment"], stored["login"])

    def refuse_unusable(self) -> None:
        """Say before anything is submitted what cannot work: ``spark-submit`` would try for a quarter of an hour."""
        folders = [Path(self.environment[name]) for name in CONF_VARIABLES if self.environment.get(name)]
        if not folders:
            raise UserError(
                "The step is submitted to YARN, but HADOOP_CONF_DIR is not set.",
                hint="Set it where dalsegno starts, or in the step: env: {HADOOP_CONF_DIR: /etc/hadoop/conf}",
            )
        named = " and ".join(str(folder) for folder in folders)
        if not any((folder / "yarn-site.xml").is_file() for folder in folders):
            raise UserError(
                f"There is no yarn-site.xml in {named}, so the cluster cannot be found.",
                hint="Set HADOOP_CONF_DIR to the folder that has the cluster's yarn-site.xml and core-site.xml.",
            )
        addresses = resource_managers(folders)
        problems = [f"{host}:{port} ({problem})" for host, port in addresses if (problem := _problem(host, port))]
        if len(problems) == len(addresses):
            raise PlatformError(
                f"No ResourceManager of YARN answers at {', '.join(problems)}.",
                hint=f"See whether it runs, and whether yarn.resourcemanager.address is right in {named}.",
            )

    def find(self, tag: str) -> Application | None:
        """The newest application with this tag."""
        listed = self._ask(_APPLICATIONS, "application", "-list", "-appStates", "ALL", "-appTags", tag)
        found = [_application(line) for line in listed.splitlines() if _ID.match(line.strip())]
        return max(found, key=lambda each: [int(part) for part in each.id.split("_")[1:]], default=None)

    def end(self, tag: str) -> Application | None:
        """See to it that nothing with this tag is at work; ``PlatformError`` if that is not certain."""
        until = time.monotonic() + _GONE_SECONDS
        asked = False
        while (found := self.find(tag)) is not None and not found.has_ended:
            if not asked:
                self._ask(_APPLICATIONS, "application", "-kill", found.id)
                asked = True
            elif time.monotonic() > until:
                raise PlatformError(f"{found.id} was killed, but YARN still reports it as {found.state}.")
        if found is not None:
            found.outlive()
        return found

    def diagnostics(self, application: Application) -> str:
        """Why an application ended so, as far as YARN knows."""
        status = self._ask(_APPLICATIONS, "application", "-status", application.id)
        found = _DIAGNOSTICS.search(status)
        return found[1].strip() if found else ""

    def _ask(self, program: str, *words: str) -> str:
        self.refuse_unusable()
        command = program_command(program, words, self.login)
        environment = {**java_environment(), **spark_environment(find_java()), **self.environment}
        try:
            answer = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise PlatformError(f"YARN did not answer within {_ANSWER_SECONDS:.0f} s.") from error
        if answer.returncode != 0:
            said = [line for line in answer.stderr.splitlines() if "Exception" in line or "ERROR" in line]
            raise PlatformError(f"YARN did not answer: {(said or ['it gave no reason'])[-1].strip()[:400]}")
        return answer.stdout


def resource_managers(folders: Sequence[Path]) -> list[tuple[str, int]]:
    """Where the ResourceManagers listen to clients, by a cluster's configuration."""
    site: dict[str, str] = {}
    for folder in reversed(folders):
        for name in ("core-site.xml", "yarn-site.xml"):
            site |= _properties(folder / name)
    prefix = "yarn.resourcemanager"
    names = [name.strip() for name in _value(site, f"{prefix}.ha.rm-ids").split(",") if name.strip()]
    found = []
    for suffix in [f".{name}" for name in names] if _value(site, f"{prefix}.ha.enabled") == "true" else [""]:
        host = _value(site, f"{prefix}.hostname{suffix}") or "0.0.0.0"  # noqa: S104 - Hadoop's own default
        address = _value(site, f"{prefix}.address{suffix}") or host
        host, _, port = address.partition(":")
        found.append((host, int(port) if port.isdecimal() else _DEFAULT_PORT))
    return found


def _properties(file: Path) -> dict[str, str]:
    try:
        # Written by whoever runs the cluster, on this machine.
        tree = ElementTree.parse(file)  # noqa: S314
    except FileNotFoundError:
        return {}
    except (OSError, ElementTree.ParseError) as error:
        raise UserError(f"{file} cannot be read: {error}.", hint="Set HADOOP_CONF_DIR to the right folder.") from error
    each = ((item.findtext("name", "").strip(), item.findtext("value", "").strip()) for item in tree.iter("property"))
    return {name: value for name, value in each if name}


def _value(site: Mapping[str, str], name: str, depth: int = 20) -> str:
    """A property, with the properties that it refers to filled in."""
    value = site.get(name, "")
    if depth == 0:
        return value
    return _REFERENCE.sub(lambda match: _value(site, match[1], depth - 1) or match[0], value)


def _problem(host: str, port: int) -> str:
    """Why nothing can be reached at an address; empty if something can."""
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _application(line: str) -> Application:
    """One line of Hadoop's table: the name, which may hold anything, is on the left of what is asked for."""
    left, state, final_state, _, _ = line.rsplit("\t", 4)
    match = _ID.search(left)
    assert match is not None  # noqa: S101 - that is how it was chosen
    return Application(match[0], state.strip(), final_state.strip())
