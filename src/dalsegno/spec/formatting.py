"""A workflow's text in the documented style: two spaces, few quotes, fields in one order. What it says stays the same.

Only the layout changes: a text keeps its dialect, its comments, and its empty lines between steps. The result is read
again and compared, so that a mistake in here can spoil no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dalsegno.errors import UserError
from dalsegno.spec import documents, workflows
from dalsegno.spec.comments import Comments, comments_of
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation, plain
from dalsegno.spec.problems import Problems
from dalsegno.spec.reading.context import AnyStepType
from dalsegno.spec.scalars import resolve

WIDTH = 100
#: Folding less than this helps nobody.
SHORT = 50

_FIRST = ("id", "name", "description", "owner", "type", "type_version", "sub_type", "sub_type_version")
_LAST = ("transition", "params", "steps", "jobs", "dag")
_ROOT = ("Description", "description", "Trigger", "trigger", "Triggers", "triggers", "properties", "is_active")
_WORKFLOWS = ("Workflow", "workflow")
_LISTS = ("jobs", "steps")
_KINDS = ("job", "step", "subworkflow", "foreach", "while")

#: What needs no quotes; the rest is quoted rather once too often.
_PLAIN = re.compile(r"[A-Za-z0-9_/$\\(.*+^~=][^\x00-\x1f\x7f\x85\u2028\u2029]*")
_NOT_PLAIN = re.compile(r": |:$| #|^[-?:] |^\*|\s$|^\.\.\.|^---|\ufeff")
_WORD = re.compile(r"[A-Za-z0-9_./$\-]+")


def formatted(text: str | bytes, *, file: str = "workflow", force: bool = False) -> str:
    """The text in the documented style; ``force`` accepts that anchors are written out."""
    problems = Problems()
    root = documents.read(text, problems)
    problems.refuse(file)
    # Templates are not at hand here, and which there are does not matter.
    workflows.read(text, file=file, types=AnyStepType())
    content = (text.decode("utf-8-sig") if isinstance(text, bytes) else text).replace("\r\n", "\n")
    if root is None:
        raise UserError(f"{file} is empty.")
    if content.lstrip()[:1] == "{" and _is_json(content):
        return json.dumps(_plain_in_order(root), ensure_ascii=False, indent=2) + "\n"
    if not force and _has_anchors(root, content):
        raise UserError(
            f"{file} has anchors, which would be written out in full.", hint="Repeat with 'force', if you want that."
        )
    comments = comments_of(content, root)
    result = _Writer(comments).document(root)
    _compare(root, result, comments, file)
    return result


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _has_anchors(root: Node, text: str) -> bool:
    """Whether a value stands in the tree twice."""
    if "&" not in text:
        return False
    seen: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            return True
        seen.add(id(node))
        if isinstance(node, ListNode):
            todo += node.items
        elif isinstance(node, MapNode):
            todo += [value for _, value in node.entries.values()]
    return False


def _compare(root: Node, result: str, comments: Comments, file: str) -> None:
    again = documents.read(result, Problems())
    left = [*comments.beside.values(), *(line for lines in comments.above.values() for line in lines)]
    if again is None or plain(again) != plain(root) or left:
        place = f"the comment {left[0]!r} has no place" if left else "the result would say something else"
        raise UserError(f"{file} cannot be formatted: {place}.", hint="Move the comment to a line of its own.")


# The order of fields.


def _ordered(node: MapNode, *, is_root: bool, is_structure: bool) -> list[tuple[Scalar, Node]]:
    """Only what is not the user's own has an order: that of parameters may matter."""
    if not is_structure:
        return list(node.entries.values())
    first, last = (_ROOT, _WORKFLOWS) if is_root and _is_wrapped(node) else (_FIRST, _LAST)

    def rank(entry: tuple[Scalar, Node]) -> int:
        name = entry[0].text
        if name in first:
            return first.index(name)
        return 100 + (last.index(name) + 1 if name in last else 0)

    return sorted(node.entries.values(), key=rank)


def _is_wrapped(node: MapNode) -> bool:
    return any(name in node.entries for name in _WORKFLOWS)


def _inner(key: str, *, is_root: bool, is_structure: bool, node: MapNode) -> bool:
    """Whether what is under this key has an order, too."""
    if not is_structure:
        return False
    return key in _WORKFLOWS if is_root and _is_wrapped(node) else key in _LISTS or key in _KINDS


def _plain_in_order(node: Node, *, is_root: bool = True, is_structure: bool = True) -> Any:
    if isinstance(node, MapNode):
        return {
            key.text: _plain_in_order(
                value,
                is_root=False,
                is_structure=_inner(key.text, is_root=is_root, is_structure=is_structure, node=node),
            )
            for key, value in _ordered(node, is_root=is_root, is_structure=is_structure)
        }
    if isinstance(node, ListNode):
        return [_plain_in_order(item, is_root=False, is_structure=is_structure) for item in node.items]
    return node.value


# Writing.


class _Writer:
    def __init__(self, comments: Comments) -> None:
        self._comments = comments

    def document(self, root: Node) -> str:
        lines = [*self._block(root, 0, is_root=True, is_structure=True), *self._comments.after]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def _block(self, node: Node, indent: int, *, is_root: bool = False, is_structure: bool = False) -> Iterator[str]:
        space = " " * indent
        if isinstance(node, MapNode):
            entries = _ordered(node, is_root=is_root, is_structure=is_structure)
            for number, (key, value) in enumerate(entries):
                inner = _inner(key.text, is_root=is_root, is_structure=is_structure, node=node)
                yield from self._leading(key.mark, space, is_first=number == 0)
                yield from self._entry(f"{space}{_scalar(key)}:", key.mark, value, indent, inner)
        elif isinstance(node, ListNode):
            for number, item in enumerate(node.items):
                yield from self._leading(item.mark, space, is_first=number == 0)
                yield from self._item(item, indent, is_structure)
        else:
            yield f"{space}{_scalar(node)}"

    def _entry(self, head: str, mark: SourceLocation, value: Node, indent: int, inner: bool) -> Iterator[str]:
        """``key: value``, on one line if it can be."""
        short = _on_one_line(value, len(head) + 1) if not self._has_comments(value) else None
        beside = self._beside(mark)
        if short is not None:
            for line in (_last_line(value),):
                beside += self._beside(SourceLocation(line, 1)) if line != mark.line else ""
            yield f"{head} {short}{beside}"
        elif isinstance(value, Scalar):
            yield from _long(head, value, indent + 2, beside)
        else:
            yield f"{head}{beside}"
            yield from self._block(value, indent + 2, is_structure=inner)

    def _item(self, item: Node, indent: int, is_structure: bool) -> Iterator[str]:
        head = f"{' ' * indent}-"
        if isinstance(item, MapNode) and item.entries:
            lines = list(self._block(item, indent + 2, is_structure=is_structure))
            first = next(number for number, line in enumerate(lines) if line.strip() and not _is_comment(line))
            yield from lines[:first]
            yield f"{head} {lines[first].lstrip()}"
            yield from lines[first + 1 :]
            return
        yield from self._entry(head, item.mark, item, indent, inner=is_structure)

    def _leading(self, mark: SourceLocation, space: str, *, is_first: bool) -> Iterator[str]:
        """The empty line and the comments above a line of the text, written once."""
        if mark.line in self._comments.spaced and not is_first:
            yield ""
        self._comments.spaced.discard(mark.line)
        for comment in self._comments.above.pop(mark.line, ()):
            yield f"{space}{comment}"

    def _beside(self, mark: SourceLocation) -> str:
        comment = self._comments.beside.pop(mark.line, None)
        return f"  {comment}" if comment else ""

    def _has_comments(self, node: Node) -> bool:
        if isinstance(node, Scalar):
            return False
        lines = range(node.mark.line + 1, _last_line(node) + 1)
        return any(line in self._comments.beside or line in self._comments.above for line in lines)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _last_line(node: Node) -> int:
    match node:
        case Scalar():
            return node.end.line
        case ListNode():
            return max((_last_line(item) for item in node.items), default=node.mark.line)
        case MapNode():
            return max((_last_line(value) for _, value in node.entries.values()), default=node.mark.line)


def _on_one_line(node: Node, begin: int) -> str | None:
    match node:
        case MapNode():
            return None if node.entries else "{}"
        case ListNode():
            words = [_scalar(item) for item in node.items if isinstance(item, Scalar)]
            line = f"[{', '.join(words)}]"
            is_short = begin + len(line) <= WIDTH and len(words) == len(node.items)
            are_words = all(_WORD.fullmatch(word) for word in words)
            return line if is_short and are_words else None
        case Scalar(value=str() as text):
            # A text that was written over several lines is folded again where it is too long for one.
            is_long = begin + len(text) > WIDTH and len(text) > SHORT
            is_foldable = " " in text and "  " not in text and text == text.strip()
            return None if "\n" in text or (is_long and is_foldable) else _scalar(node)
        case _:
            return _scalar(node)


def _long(head: str, scalar: Scalar, indent: int, beside: str) -> Iterator[str]:
    """A text of several lines as a literal block, a long line as a folded one; else in quotes."""
    text = str(scalar.value)
    space = " " * indent
    if "\n" not in text:
        yield f"{head} >-{beside}"
        yield from (f"{space}{line}" for line in _folded(text, WIDTH - indent))
        return
    if text[0] in " \t\n" or re.search(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]", text) or not text.strip():
        yield f"{head} {json.dumps(text, ensure_ascii=False)}{beside}"
        return
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    yield f"{head} |{chomping}{beside}"
    yield from (f"{space}{line}" if line else "" for line in text[: len(text) - (1 if ends else 0)].split("\n"))


def _folded(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def _scalar(scalar: Scalar) -> str:
    value = scalar.value
    if not isinstance(value, str):
        return "null" if value is None else str(value).lower() if isinstance(value, bool) else scalar.text
    if _PLAIN.fullmatch(value) and not _NOT_PLAIN.search(value) and resolve(value) == value:
        return value
    if re.search(r"[\x00-\x1f\x7f\x85\u2028\u2029\ufeff]", value):
        return json.dumps(value, ensure_ascii=False)
    quoted = value.replace("'", "''")
    return f"'{quoted}'"
