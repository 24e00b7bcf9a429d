"""Who calls, where no request says so."""

from __future__ import annotations

import getpass
import os

from dalsegno.model.callers import Caller, Role

#: What starts runs by the clock, by signals and by changes of tables.
TRIGGER = Caller.of("trigger", [Role.OPERATOR])
#: What a server does by itself.
NODE = Caller.of("node", [Role.ADMIN])


def local_caller() -> Caller:
    """The user of the machine, who could change the store and the tables without us."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return Caller.of(f"{user}@{os.uname().nodename}", [Role.ADMIN])
