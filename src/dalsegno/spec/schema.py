"""The JSON schema of workflows, for editors: what all workflows have, and each kind of trigger."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from dalsegno.triggers import TRIGGERS
from dalsegno.triggers.spec import schema_of


def workflow_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(
        resources.files("dalsegno.spec").joinpath("workflow.schema.json").read_text("utf-8")
    )
    definitions = schema["definitions"]
    for kind in TRIGGERS:
        part = schema_of(kind)
        definitions.update(part["definitions"])
        definitions["trigger"]["anyOf"].append(part["written"])
        definitions["workflow"]["properties"][f"{kind}_triggers"] = {"type": "array", "items": part["stored"]}
        definitions["properties"]["properties"][f"{kind}_trigger_disabled"] = {"type": "boolean"}
    return schema
