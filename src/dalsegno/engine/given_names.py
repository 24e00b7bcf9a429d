"""Names that whoever starts a run cannot give to a parameter: they would change what the author refers to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dalsegno.engine.blueprints import Blueprint
from dalsegno.engine.scopes import TEMPLATE_VERSION, is_handed_from_starter
from dalsegno.errors import ParamError
from dalsegno.settings import Settings
from dalsegno.steps.inherited import is_inherited
from dalsegno.steps.references import is_taken

#: Variables that tell programs what else to run, or whom to ask. Scripts extend them: ``CLASSPATH="$CLASSPATH:x.jar"``.
_READ_BY_PROGRAMS = re.compile(
    r"(?:\w+_)?CLASSPATH|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|\w+_OPTS|NODE_PATH|R_(?:LIBS|PROFILE)\w*|EDITOR|VISUAL|PAGER"
    r"|GIT_(?:SSH|CONFIG)\w*|GIT_(?:\w+_)?(?:DIR|PATH|EDITOR|PAGER|ASKPASS|COMMAND|DIFF)|SSH_\w+|(?:GEM|PIP|UV)_\w+"
    r"|PYSPARK_\w+|(?:SPARK|HADOOP|YARN)_(?:HOME|CONF_DIR)|DOCKER_(?:HOST|CONFIG)|CONTAINER_HOST"
    r"|PG(?:HOST|HOSTADDR|PORT|OPTIONS|SERVICE|SERVICEFILE|SSL\w+)|(?:CURL|REQUESTS)_CA_BUNDLE|\w+_(?:proxy|PROXY)",
    re.ASCII,
)


def refuse_hiding(name: str, settings: Settings, where: str) -> None:
    """Refuse a name that nobody declared and that would take the place of something that the author refers to.

    ``$PATH`` in a script means the environment's, even where there is none, and ``${capture.change_table}`` the output
    of a step.
    """
    if "." in name:
        what = "could hide the output of a step"
    elif name == TEMPLATE_VERSION:
        what = "decides which job template a step is made from"
    elif is_taken(name) or is_inherited(name, settings) or _READ_BY_PROGRAMS.fullmatch(name):
        what = "would hide an environment variable"
    else:
        return
    raise ParamError(
        f"The parameter {name!r} {what}, and {where} does not declare it.",
        hint="Give it another name, or declare it where the workflow is written.",
    )


def refuse_hiding_in_step(blueprint: Blueprint, step_id: str, given: Any, settings: Settings) -> None:
    """The same of every parameter that is given to a step."""
    if step_id in blueprint.steps and isinstance(given, Mapping):
        for name in given.keys() - blueprint.steps[step_id].params.keys():
            refuse_hiding(name, settings, f"the step {step_id!r}")


def refuse_handed(blueprint: Blueprint, handed: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    """The same of what a run hands down to a subworkflow, as far as somebody gave it who started a run."""
    for name, given in handed.items():
        if is_handed_from_starter(given):
            refuse_hiding_in_step(blueprint, name, given.get("value"), settings)
