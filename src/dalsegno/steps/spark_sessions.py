"""Which Spark server the settings mean, and the session that an attempt has on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dalsegno.errors import PlatformError
from dalsegno.iceberg.catalogs import make_local_folders, spark_configuration
from dalsegno.settings import Settings
from dalsegno.spark.connect import Session, session_id_for
from dalsegno.spark.failures import explained
from dalsegno.spark.server import LocalServer, Say, running_in, unsaid
from dalsegno.steps.contract import Work
from dalsegno.steps.stamps import stamp

#: Left in the attempt's folder before its session does anything.
_OPENED = "spark-session"


def catalog_conf(settings: Settings) -> dict[str, str]:
    """What makes Spark see the catalogs of the settings, and be able to use those in files."""
    for catalog in settings.catalogs.values():
        make_local_folders(catalog)
    return {key: value for catalog in settings.catalogs.values() for key, value in spark_configuration(catalog).items()}


def local_server(settings: Settings) -> LocalServer:
    return LocalServer(
        settings.root,
        conf=catalog_conf(settings) | dict(settings.spark_conf),
        memory=settings.spark_memory,
        idle_minutes=settings.spark_idle_minutes,
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
    session = Session(server_address(work.settings, say), session_id_for(work.key))
    marker = work.folder / _OPENED
    if marker.exists():
        say("An earlier process began this attempt: ending what it left in Spark.")
        session.clear()
    # Settings may change before somebody looks for what this attempt left.
    marker.write_text("" if work.settings.spark_remote else str(local_server(work.settings).folder))
    catalogs: dict[str, str] = {}
    if work.settings.spark_remote:
        catalogs = _catalogs_unknown_to(session, work.settings)
    session.configure(catalogs | dict(conf) | stamp(work))
    return session


def opened_for(settings: Settings, key: str, say: Say = unsaid) -> Session:
    """A session that is no attempt's, and leaves no stamp on what it writes."""
    session = Session(server_address(settings, say), session_id_for(key))
    if settings.spark_remote:
        session.configure(_catalogs_unknown_to(session, settings))
    return session


def cleared_from_elsewhere(work: Work) -> None:
    """End what another machine began for the attempt, if both use the same server."""
    if not (work.folder / _OPENED).exists() and work.settings.spark_remote:
        _clear(Session(work.settings.spark_remote, session_id_for(work.key)))


def cleared(work: Work) -> None:
    """End all that the attempt left in Spark, whoever began it. No server is started for that."""
    marker = work.folder / _OPENED
    if not marker.exists():
        return
    address = work.settings.spark_remote
    if folder := marker.read_text():
        server = running_in(Path(folder))
        address = server.address if server else None
    if address:
        _clear(Session(address, session_id_for(work.key)))
    marker.unlink(missing_ok=True)


def _clear(session: Session) -> None:
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
    lacking = session.lacking([f"spark.sql.catalog.{name}" for name in settings.catalogs])
    return {
        key: value
        for name, catalog in settings.catalogs.items()
        if f"spark.sql.catalog.{name}" in lacking
        for key, value in spark_configuration(catalog).items()
    }
