"""Which Spark server the settings mean, and the session that an attempt has on it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dalsegno.errors import PlatformError
from dalsegno.iceberg.catalogs import open_catalog, spark_configuration
from dalsegno.iceberg.object_stores import is_cloud_variable, spark_variables
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.failures import explained
from dalsegno.spark.server import LocalServer, Say, running_in, unsaid
from dalsegno.spark.session_reaper import SessionReaper
from dalsegno.steps.contract import Work
from dalsegno.steps.secret_values import without_secrets
from dalsegno.steps.stamps import stamp

#: Left in the attempt's folder before its session does anything.
_OPENED = "spark-session"
#: By this name the handle of an attempt has its session, if it is SQL: on a server that all machines use, it is found
#: without the attempt's folder.
HANDLE = "session"
#: Spark's setting that says what ``INSERT OVERWRITE`` deletes.
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
#: Spark's setting that says where drivers are.
DEPLOY_MODE = "spark.submit.deployMode"
#: Spark's setting that sends writes to a branch, in tables that allow it.
WAP_BRANCH = "spark.wap.branch"

#: Sessions of attempts that have succeeded: if that is not saved by now, another process learns it from the session.
late_ends = SessionReaper(seconds=120)


def catalog_conf(settings: Settings) -> dict[str, str]:
    """What makes Spark see the catalogs of the settings, and be able to use those in files."""
    for catalog in settings.catalogs.values():
        open_catalog(catalog).make_local_folders()
    return {key: value for catalog in settings.catalogs.values() for key, value in spark_configuration(catalog).items()}


def cloud_variables(settings: Settings) -> dict[str, str]:
    """The environment variables with which a driver reaches the object stores of the catalogs."""
    environment = without_secrets(os.environ, settings)
    found = {name: value for name, value in environment.items() if is_cloud_variable(name, settings.catalogs)}
    return found | spark_variables(settings.catalogs)


def check_stores(settings: Settings, statements: Iterable[str]) -> None:
    """Let the object stores of the catalogs that statements name refuse at once, with the setting to change."""
    words = {word for statement in statements for word in re.findall(r"\w+", statement)}
    for name in settings.catalogs.keys() & words:
        open_catalog(settings.catalogs[name]).check_store()


def is_begun(work: Work) -> bool:
    """Whether a process has opened the attempt's session before."""
    return (work.folder / _OPENED).exists() or HANDLE in (work.handle or {})


def local_server(settings: Settings) -> LocalServer:
    credentials = cloud_variables(settings)
    return LocalServer(
        settings.root,
        # Its driver is a server on this machine, wherever those of submitted steps are.
        conf=catalog_conf(settings) | {k: v for k, v in settings.spark_conf.items() if k != DEPLOY_MODE},
        memory=settings.spark_memory,
        idle_minutes=settings.spark_idle_minutes,
        environment=without_secrets(os.environ, settings) | credentials,
        credentials=credentials,
    )


def server_address(settings: Settings, say: Say) -> str:
    """The server to use; the local one is started unless it runs."""
    return settings.spark_remote or local_server(settings).ensure(say).address


def keep_warm(work: Work) -> None:
    """Say that the server is still needed, if the attempt uses the local one."""
    marker = work.folder / _OPENED
    if marker.exists() and not work.settings.spark_remote:
        local_server(work.settings).use()


def opened(work: Work, conf: Mapping[str, str], say: Say = unsaid) -> Session:
    """The attempt's session, with nothing running in it, configured and stamped."""
    is_used = (work.folder / _OPENED).exists()
    session = connected(work, say)
    if is_used:
        say("An earlier process began this attempt: ending what it left in Spark.")
        session.clear()
    session.configure(configuration(session, work, conf))
    return session


def connected(work: Work, say: Say) -> Session:
    """The attempt's session, as it is."""
    address = _known_address(work) or server_address(work.settings, say)
    if not (work.folder / _OPENED).exists():
        # Settings may change before somebody looks for what this attempt left.
        server = "" if work.settings.spark_remote else str(local_server(work.settings).folder)
        (work.folder / _OPENED).write_text(server)
    return Session(address, session_id_for(work.key))


def prepared(work: Work, conf: Mapping[str, str]) -> Session:
    """The attempt's session with its settings, for what must be there before its statements; not stamped."""
    session = connected(work, unsaid)
    own = configuration(session, work, conf)
    session.configure({name: value for name, value in own.items() if name not in stamp(work)})
    return session


def configuration(session: Session, work: Work, conf: Mapping[str, str]) -> dict[str, str]:
    """What a new session of the attempt is told: catalogs, the step's own settings, and the stamp."""
    catalogs: dict[str, str] = {}
    if work.settings.spark_remote:
        catalogs = _catalogs_unknown_to(session, work.settings)
    return overwrite_mode(work.settings) | catalogs | dict(conf) | stamp(work)


def overwrite_mode(settings: Settings) -> dict[str, str]:
    """``INSERT OVERWRITE`` replaces the partitions that it writes to, unless the settings say otherwise.

    Spark's own default deletes all others: behind a capture, everything but what is new.
    """
    return {} if OVERWRITE_MODE in settings.spark_conf else {OVERWRITE_MODE: "dynamic"}


def opened_for(settings: Settings, key: str, say: Say = unsaid) -> Session:
    """A session that is no attempt's, and leaves no stamp on what it writes."""
    session = Session(server_address(settings, say), session_id_for(key))
    catalogs = _catalogs_unknown_to(session, settings) if settings.spark_remote else {}
    if conf := overwrite_mode(settings) | catalogs:
        session.configure(conf)
    return session


def cleared(work: Work) -> None:
    """End all that the attempt left in Spark, whoever began it. No server is started for that."""
    if address := _known_address(work):
        clear(Session(address, session_id_for(work.key)))
    (work.folder / _OPENED).unlink(missing_ok=True)


def _known_address(work: Work) -> str | None:
    """The server on which the attempt has a session, if it has one and the server is there."""
    marker = work.folder / _OPENED
    if marker.exists() and (folder := marker.read_text()):
        server = running_in(Path(folder))
        return server.address if server else None
    is_elsewhere = HANDLE in (work.handle or {})
    return work.settings.spark_remote if marker.exists() or is_elsewhere else None


def clear(session: Session) -> None:
    """See all that runs in a session gone, and end it; ``PlatformError`` if that is not certain."""
    try:
        session.clear()
        session.release()
    except Exception as error:
        failure = explained(error)
        # The session may have been ended, by the script in it or by us before.
        if "INVALID_HANDLE.SESSION" not in failure.details:
            raise PlatformError(
                f"What runs in Spark could not be ended: {failure.message}", hint=failure.hint
            ) from error
    finally:
        session.disconnect()


def _catalogs_unknown_to(session: Session, settings: Settings) -> dict[str, str]:
    """A cluster's own definition of a catalog counts."""
    known = session.settings([f"spark.sql.catalog.{name}" for name in settings.catalogs])
    return {
        key: value
        for name, catalog in settings.catalogs.items()
        if f"spark.sql.catalog.{name}" not in known
        for key, value in spark_configuration(catalog).items()
    }
