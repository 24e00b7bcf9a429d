"""Runs the steps under ``versions``, with Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from dalsegno.errors import UserError
from dalsegno.hints import Verb, action
from dalsegno.store.failures import Place
from dalsegno.store.migrations import from_the_future, version


def revisions() -> list[str]:
    """Every schema version there ever was, oldest first."""
    steps = ScriptDirectory.from_config(_config()).walk_revisions()
    return [step.revision for step in steps][::-1]


def upgrade(connection: Connection, place: Place, target: str) -> None:
    """Run what is missing up to ``target`` on a connection that is inside a transaction."""
    found = version(connection)
    if found is not None and found < revisions()[0]:
        raise UserError(
            f"The database {place} has schema version {found}, from before the first release.",
            hint="Give the store a new database.",
            actions=[action("Then read the checkpoints back from the targets", Verb.REBUILD_CHECKPOINTS)],
        )
    if found is not None and found not in revisions():
        raise from_the_future(place, found)
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _config() -> Config:
    config = Config()
    # Alembic reads % as the start of a reference.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config
