"""The fields of each step type's block, and what they may hold: one declaration for checks and for runners.

It is here, below the runners, because a workflow is checked without loading what runs its steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from dalsegno.model.captures import ChangeKind, Mode
from dalsegno.model.snapshots import Operation

HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CONTAINER_ENGINES = ("docker", "podman")
#: What a capture does if there is nothing new.
SKIP, FAIL, CONTINUE = "skip", "fail", "continue"


class Kind(Enum):
    """What a field holds, where that can be judged before a run."""

    ANY = auto()
    FLAG = auto()
    #: A number of seconds above 0.
    SECONDS = auto()
    #: A whole number above 0, also as a text.
    COUNT = auto()


@dataclass(frozen=True)
class BlockField:
    kind: Kind = Kind.ANY
    #: If it is one of some words, or a list of them.
    words: tuple[str, ...] = ()
    #: Whether upper and lower case matter.
    is_exact: bool = True
    #: If it holds fields itself.
    fields: Mapping[str, BlockField] = field(default_factory=dict)


_ANY, _FLAG, _SECONDS, _COUNT = (BlockField(kind) for kind in (Kind.ANY, Kind.FLAG, Kind.SECONDS, Kind.COUNT))
_METHOD = BlockField(words=HTTP_METHODS, is_exact=False)

Block = Mapping[str, BlockField]


def _block(*names: str, **fields: BlockField) -> Block:
    return {**dict.fromkeys(names, _ANY), **fields}


_CAPTURE = _block(
    *("keys", "range_columns", "branch", "from", "upto", "consumer"),
    capture_mode=BlockField(words=tuple(Mode), is_exact=False),
    data_operations=BlockField(words=tuple(Operation), is_exact=False),
    changes=BlockField(words=tuple(ChangeKind)),
    max_snapshots=_COUNT,
    max_bytes=_COUNT,
    when_nothing_new=BlockField(words=(SKIP, FAIL, CONTINUE)),
)
_CANCEL = _block("url", method=_METHOD)
_POLL = _block("url", "headers", every=_SECONDS, cancel=BlockField(fields=_CANCEL))

#: By the name of the block.
BLOCKS: Mapping[str, Block] = {
    "container": _block(
        *("image", "command", "args", "env", "volumes", "cpu", "memory", "workdir", "user", "network"),
        engine=BlockField(words=CONTAINER_ENGINES),
    ),
    "http": _block(
        *("url", "headers", "body"),
        method=_METHOD,
        timeout=_SECONDS,
        follow_redirects=_FLAG,
        poll=BlockField(fields=_POLL),
    ),
    "icdc": {**_CAPTURE, **_block("sourceTable", "source_table", "targetTable", "target_table")},
    "ip_capture": {**_CAPTURE, **_block("source_tables")},
    "ip_commit": _block("capture_step"),
    "java": _block("jar", "main_class", "class", "classpath", "args", "jvm_args", "env", "folder"),
    "notebook": _block("input_path", "output_path", "parameters", "papermill_arguments", "env", "folder"),
    "python": _block("script", "file", "module", "args", "env", "folder", "interpreter"),
    "shell": _block("script", "file", "command", "args", "env", "folder", "interpreter"),
    "spark": _block(
        *("script", "file", "jar", "args", "env", "conf", "class", "master", "packages"),
        submit=_FLAG,
        idempotent=_FLAG,
        atomic=_FLAG,
        deploy_mode=BlockField(words=("client", "cluster")),
    ),
    "sql": _block("connection", "script", "query", "file", "args"),
}


def fields_of(path: str) -> Block | None:
    """The fields of a block, or of a part of one such as ``http.poll``; None if it is not declared here."""
    name, *inner = path.split(".")
    found = BLOCKS.get(name)
    for each in inner:
        found = found[each].fields if found and each in found else None
    return found or None
