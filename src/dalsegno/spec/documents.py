"""Text → a tree of values that know their places. YAML 1.2, and JSON, which needs its own scanner for what YAML lacks.

PyYAML only cuts the text into events. Its own loaders follow YAML 1.1, let the last of two equal keys win, and its C
loader dies of deep nesting; so the tree is built by ``composing``, under limits.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, NoReturn

import yaml

from dalsegno.spec import json_text
from dalsegno.spec.composing import Composer
from dalsegno.spec.nodes import ListNode, MapNode, Node, Scalar, SourceLocation
from dalsegno.spec.problems import Problems, Stopped
from dalsegno.spec.scalars import resolve
from dalsegno.spec.wrapped import unwrapped

BYTES = 1024 * 1024

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_PRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: A mapping in brackets whose first key is quoted; YAML may begin so, too, but nobody means it.
_JSON = re.compile(r'\s*\{\s*["}]')
_REFERENCE = re.compile(r"\$\w*\{")
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
#: What may be said about a value's type.
_TAGS = {
    f"{_TAG_PREFIX}{name}": kind
    for name, kind in (("str", str), ("int", int), ("float", float), ("bool", bool), ("null", type(None)))
}
_COLLECTIONS = frozenset({f"{_TAG_PREFIX}map", f"{_TAG_PREFIX}seq"})
_QUOTE_KEY = "a key that begins with '!' needs quotes, such as '!name'"


def read(text: str | bytes, problems: Problems) -> Node | None:
    """The document's root; None if there is none, which the problems then say."""
    try:
        content = _checked(text, problems)
        return json_text.compose(content, problems) if _JSON.match(content) else _yaml(content, problems)
    except Stopped:
        return None


def _checked(text: str | bytes, problems: Problems) -> str:
    if len(text) > BYTES or (isinstance(text, str) and len(text.encode("utf-8", "surrogatepass")) > BYTES):
        problems.stop(f"the document is larger than {BYTES:,} bytes", SourceLocation(1, 1))
    content = _decoded(text, problems) if isinstance(text, bytes) else text.removeprefix("\ufeff")
    if found := _NOT_PRINTABLE.search(content):
        problems.stop(f"the character U+{ord(found[0]):04X} may not be in a document", mark_at(content, found.start()))
    return content


def _decoded(data: bytes, problems: Problems) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8", "replace")
        problems.stop("this is not UTF-8", mark_at(good, len(good)), "save the file as UTF-8")


def mark_at(text: str, index: int) -> SourceLocation:
    start = text.rfind("\n", 0, index)
    return SourceLocation(text.count("\n", 0, index) + 1, index - start)


def _yaml(text: str, problems: Problems) -> Node | None:
    try:
        return _composed(text, problems)
    except yaml.MarkedYAMLError as error:
        repaired = unwrapped(text)
        if repaired != text:
            with suppress(yaml.MarkedYAMLError):
                return _composed(repaired, problems)
        _stop_at(error, text, problems)


def _composed(text: str, problems: Problems) -> Node | None:
    composer = Composer(problems)
    for event in yaml.parse(text, Loader=_LOADER):
        mark = _mark(event.start_mark)
        match event:
            case yaml.DocumentStartEvent() if composer.root is not None:
                problems.stop("a second document begins here", mark, "write one workflow per file")
            case yaml.ScalarEvent():
                composer.scalar(_scalar(event, mark, problems), event.anchor)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                _refuse_tag(event.tag, mark, problems)
                begun = MapNode(mark) if isinstance(event, yaml.MappingStartEvent) else ListNode(mark)
                composer.begin(begun, event.anchor)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                composer.end()
            case yaml.AliasEvent():
                composer.alias(event.anchor, mark)
    if composer.root is None:
        problems.stop("the document is empty", SourceLocation(1, 1))
    return composer.root


def _scalar(event: yaml.ScalarEvent, mark: SourceLocation, problems: Problems) -> Scalar:
    style = event.style or ""
    style = "" if style == ":" else style
    value = resolve(event.value) if event.implicit[0] and not style else event.value
    if event.tag and event.tag != "!":
        kind = _TAGS.get(event.tag)
        if kind is None:
            _refuse_tag(event.tag, mark, problems)
        elif kind is str:
            value = event.value
        else:
            value = resolve(event.value)
            if kind is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not kind:
                problems.add(f"{event.value!r} is not a valid {event.tag.removeprefix(_TAG_PREFIX)}", mark)
    elif event.tag == "!":
        value = event.value
    return Scalar(value, mark, event.value, style, _mark(event.end_mark))


def _refuse_tag(tag: str | None, mark: SourceLocation, problems: Problems) -> None:
    if tag is None or tag == "!" or tag in _COLLECTIONS:
        return
    shown = tag.replace(_TAG_PREFIX, "!!")
    problems.add(f"the tag {shown} has no meaning here", mark, hint=None if shown[:2] == "!!" else _QUOTE_KEY)


def _stop_at(error: yaml.MarkedYAMLError, text: str, problems: Problems) -> NoReturn:
    found = error.problem_mark or error.context_mark
    mark = _mark(found) if found else SourceLocation(1, 1)
    lines = text.splitlines()
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    before = lines[mark.line - 2] if 1 < mark.line <= len(lines) + 1 else ""
    hint = None
    if line[mark.column - 1 : mark.column] == "\t":
        hint = "indent with spaces, not with tabs"
    elif any(each.lstrip(" -").startswith("!") for each in (line, before)):
        hint = _QUOTE_KEY
    elif line[mark.column - 1 : mark.column] in ("@", "`", "%"):
        hint = "put the text in quotes"
    elif "mapping values" in (error.problem or ""):
        hint = "put a text that holds ': ' in quotes"
        if ":" not in line[: mark.column - 1] and before.strip():
            # The first colon of its line: the line above holds a value, or lacks a colon.
            hint = f"indent this line like line {mark.line - 1}, or end the key there with ':'"
    elif _REFERENCE.search(line):
        hint = "put ${…} in quotes where it stands between brackets"
    message, advice = _in_words(error, lines, mark)
    problems.stop(message, mark, hint or advice)


def _in_words(error: yaml.MarkedYAMLError, lines: list[str], mark: SourceLocation) -> tuple[str, str | None]:
    """What the parser did not find, in words of people who do not write parsers."""
    problem = error.problem or "this isn't YAML"
    begun = error.context_mark
    if begun is not None and "unexpected end of stream" in problem and "quoted" in (error.context or ""):
        return f"the quote that opens in line {begun.line + 1} isn't closed", None
    if begun is None or "did not find expected" not in problem:
        return problem.replace("mapping values are not allowed in this context", "a ':' isn't expected here"), None
    line = lines[mark.line - 1] if mark.line <= len(lines) else ""
    where = f"in line {begun.line + 1}"
    if "flow" in (error.context or ""):
        bracket = "]" if "sequence" in (error.context or "") else "}"
        return f"a bracket that opens {where} isn't closed before this: expected ',' or {bracket!r}", None
    is_list = "block collection" in (error.context or "")
    what = "a list of items that begin with '- '" if is_list else "a mapping of 'key: value' lines"
    indent, expected = len(line) - len(line.lstrip()), begun.column
    message = f"wrong indentation or a missing ':': expected the next line of {what} that begins {where}"
    if not line.strip():
        return message, None
    return message, f"this line begins in column {indent + 1}, those of line {begun.line + 1} in column {expected + 1}"


def _mark(mark: yaml.SourceLocation) -> SourceLocation:
    return SourceLocation(mark.line + 1, mark.column + 1)
