"""Tags: a text, or an object with a name, a namespace and whatever else."""

from __future__ import annotations

from enum import StrEnum

from dalsegno.model.params import Tag
from dalsegno.spec import names
from dalsegno.spec.fields import Fields
from dalsegno.spec.nodes import MapNode, Node, Scalar, plain


class Namespace(StrEnum):
    SYSTEM = "SYSTEM"
    RUNTIME = "RUNTIME"
    JOB_TEMPLATE = "JOB_TEMPLATE"
    NOTEBOOK_TEMPLATE = "NOTEBOOK_TEMPLATE"
    USER_DEFINED = "USER_DEFINED"
    PLATFORM = "PLATFORM"


def read_tags(fields: Fields, name: str) -> tuple[Tag, ...]:
    found: dict[str, Tag] = {}
    for item in fields.items(name):
        tag = _tag(item, fields, name)
        if tag is None:
            continue
        if tag.name in found:
            fields.at(f"the tag {tag.name!r} is given twice", item, name)
        elif fault := names.fault_of_name(tag.name):
            fields.at(f"{tag.name!r} cannot be a tag: {fault}", item, name)
        found[tag.name] = tag
    return tuple(found.values())


def _tag(item: Node, fields: Fields, name: str) -> Tag | None:
    if isinstance(item, Scalar) and item.value is not None:
        return Tag(item.text)
    inner = Fields(item, fields.place(name), fields.problems) if isinstance(item, MapNode) else None
    tag_name = inner.text("name") if inner else None
    if inner is None or tag_name is None:
        fields.at("a tag is a text, or a mapping with a name", item, name)
        return None
    # How many permits there are is asked of the store, never kept.
    inner.find("permit")
    namespace = inner.choice(Namespace, "namespace")
    return Tag(tag_name, namespace, {key.text: plain(value) for key, value in inner.rest()})
