"""Sets of characters: what stands in brackets or after a backslash."""

from __future__ import annotations

import re
import unicodedata

from dalsegno.sel.faults import Fault
from dalsegno.sel.regex.program import Test

_DEEPEST = 50
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
LINE_ENDS = frozenset("\n\r\u0085\u2028\u2029")
_DIGITS = frozenset("0123456789")
_SPACES = frozenset(" \t\n\x0b\f\r")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_POSIX: dict[str, Test] = {
    "Lower": lambda c: c.isascii() and c.islower(),
    "Upper": lambda c: c.isascii() and c.isupper(),
    "ASCII": str.isascii,
    "Alpha": lambda c: c.isascii() and c.isalpha(),
    "Digit": _DIGITS.__contains__,
    "Alnum": lambda c: c.isascii() and c.isalnum(),
    "Punct": lambda c: c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "Graph": lambda c: "!" <= c <= "~",
    "Print": lambda c: " " <= c <= "~",
    "Blank": lambda c: c in " \t",
    "Cntrl": lambda c: c < " " or c == "\x7f",
    "XDigit": lambda c: c in "0123456789abcdefABCDEF",
    "Space": _SPACES.__contains__,
    "IsAlphabetic": str.isalpha,
    "IsDigit": str.isdecimal,
    "IsLetter": str.isalpha,
    "IsUppercase": str.isupper,
    "IsLowercase": str.islower,
    "IsWhite_Space": str.isspace,
}
_CLASSES: dict[str, Test] = {
    "d": _DIGITS.__contains__,
    "s": _SPACES.__contains__,
    "w": _WORD.__contains__,
    "h": lambda c: c in " \t\xa0\u1680\u180e\u202f\u205f\u3000" or "\u2000" <= c <= "\u200a",
    "v": lambda c: c in "\n\x0b\f\r\x85\u2028\u2029",
}


class CharacterSets:
    """A place in a pattern, and the sets that are read from there."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def fault(self, what: str, *, hint: str | None = None) -> Fault:
        return Fault(f"the regular expression '{self.pattern:.60}' has {what} at {self.position + 1}", hint=hint)

    @property
    def next(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def take(self, text: str) -> bool:
        if self.pattern.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def escaped(self) -> Test:
        """A class or a character that is written with a backslash."""
        letter = self.next
        self.position += 1
        if letter.lower() in _CLASSES and letter:
            test = _CLASSES[letter.lower()]
            return test if letter.islower() else lambda c: not test(c)
        if letter in {"p", "P"}:
            return self._property(negated=letter == "P")
        if letter in _CONTROLS:
            return _CONTROLS[letter].__eq__
        for start, form in (
            ("x", r"[0-9a-fA-F]{2}"),
            ("x", r"\{[0-9a-fA-F]{1,6}\}"),
            ("u", "[0-9a-fA-F]{4}"),
            ("0", "[0-3]?[0-7]{1,2}"),
        ):
            match = re.compile(form).match(self.pattern, self.position) if letter == start else None
            if match:
                self.position = match.end()
                return chr(int(match[0].strip("{}"), 8 if start == "0" else 16)).__eq__
        if not letter or (letter.isascii() and letter.isalnum()):
            self.position -= 1
            raise self.fault(f"\\{letter}, which means nothing", hint="For a backslash in a pattern write \\\\\\\\.")
        return letter.__eq__

    def _property(self, *, negated: bool) -> Test:
        """\\p{Alpha}, \\p{L}, \\pL: a class of POSIX, or a category of Unicode."""
        match = re.compile(r"\{(\w{1,20})\}|(\w)").match(self.pattern, self.position)
        name = (match[1] or match[2]) if match else ""
        category = name.removeprefix("Is")
        if match is None or (name not in _POSIX and not re.fullmatch(r"[LMNPSZC][a-z]?", category)):
            raise self.fault(f"\\p{{{name}}}, which is not a known property")
        self.position = match.end()
        test = _POSIX.get(name) or (lambda c: unicodedata.category(c).startswith(category))
        return (lambda c: not test(c)) if negated else test

    def bracketed(self, depth: int) -> Test:
        """What stands in brackets: characters, ranges, classes, unions, and intersections with &&."""
        if depth > _DEEPEST:
            raise self.fault("brackets that are nested too deeply")
        negated = self.take("^")
        tests: list[Test] = []
        first = True
        while first or self.next != "]":
            if not self.next:
                raise self.fault("a [ without a ]")
            if self.take("&&"):
                tests = [_both(_any_of(tests), self._intersected(depth))]
                break
            if self.take("["):
                tests.append(self.bracketed(depth + 1))
            else:
                tests.append(self._range())
            first = False
        if not self.take("]"):
            raise self.fault("a [ without a ]")
        found = _any_of(tests)
        return (lambda c: not found(c)) if negated else found

    def _intersected(self, depth: int) -> Test:
        tests: list[Test] = []
        while self.next and self.next != "]":
            tests.append(self.bracketed(depth + 1) if self.take("[") else self._range())
        return _any_of(tests)

    def _range(self) -> Test:
        start = self.next
        self.position += 1
        if start == "\\":
            at = self.position
            test = self.escaped()
            if self.position - at > 1 or self.pattern[at].isalnum() or self.next != "-":
                return test
            start = self.pattern[at]
        if self.next == "-" and self.pattern[self.position + 1 : self.position + 2] not in {"]", "[", ""}:
            self.position += 1
            self.take("\\")
            end = self.next
            self.position += 1
            if end < start:
                raise self.fault(f"a range {start}-{end} in the wrong order")
            return lambda c: start <= c <= end
        return start.__eq__


def _both(one: Test, other: Test) -> Test:
    return lambda c: one(c) and other(c)


def _any_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda c: any(test(c) for test in tests)
