"""From a pattern in Java's syntax to a program."""

from __future__ import annotations

import re

from dalsegno.sel.faults import Fault
from dalsegno.sel.regex.characters import LINE_ENDS, CharacterSets
from dalsegno.sel.regex.program import Assert, Done, Fork, Instruction, Jump, Look, Program, Save, Take, Test

#: Instructions of a program, at most: {1000}{1000} would have a million.
_LONGEST = 5_000
_DEEPEST = 50
_FLAGS = frozenset("ismu")
_BOUNDS = re.compile(r"\{(\d{1,5})(,(\d{1,5})?)?\}")


def compiled(pattern: str) -> Program:
    """The program of a pattern; a ``Fault`` if it is none, or one that cannot be run in linear time."""
    compiler = _Compiler(pattern)
    compiler.add(Save(0))
    compiler.alternatives(0)
    if compiler.position < len(pattern):
        raise compiler.fault("a ) without a (")
    compiler.add(Save(1))
    compiler.add(Done())
    return compiler.program


class _Compiler(CharacterSets):
    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.program = Program()
        self._flags: frozenset[str] = frozenset()

    def add(self, instruction: Instruction) -> int:
        if len(self.program.instructions) >= _LONGEST:
            raise Fault(f"the regular expression '{self.pattern:.60}' is too large")
        self.program.instructions.append(instruction)
        return len(self.program.instructions) - 1

    @property
    def _here(self) -> int:
        return len(self.program.instructions)

    def alternatives(self, depth: int) -> None:
        """One or more sequences with | between them; flags that are set inside end with the group."""
        if depth > _DEEPEST:
            raise self.fault("groups that are nested too deeply")
        outer = self._flags
        ends: list[Jump] = []
        while True:
            start = self._here
            self._sequence(depth)
            if not self.take("|"):
                break
            body = self.program.instructions[start:]
            del self.program.instructions[start:]
            fork = Fork()
            fork.first = self.add(fork) + 1
            self._again(body, 1)
            jump = Jump()
            self.add(jump)
            ends.append(jump)
            fork.second = self._here
        for jump in ends:
            jump.to = self._here
        self._flags = outer

    def _again(self, body: list[Instruction], shift: int) -> None:
        """Instructions once more, so many places further on."""
        for instruction in body:
            match instruction:
                case Fork(first=first, second=second):
                    self.add(Fork(first + shift, second + shift))
                case Jump(to=to):
                    self.add(Jump(to + shift))
                case _:
                    self.add(instruction)

    def _sequence(self, depth: int) -> None:
        while self.next and self.next not in "|)":
            start = self._here
            if self._atom(depth):
                self._repeated(start)

    def _atom(self, depth: int) -> bool:
        """One thing that may be repeated; False if it was a mere setting of flags."""
        if self.take("("):
            return self._group(depth)
        if self.take("["):
            self._take_test(self.bracketed(depth))
        elif self.take("."):
            everything = "s" in self._flags
            self.add(Take((lambda _: True) if everything else (lambda c: c not in LINE_ENDS)))
        elif self.take("^"):
            self.add(Assert("line start" if "m" in self._flags else "start"))
        elif self.take("$"):
            self.add(Assert("line end" if "m" in self._flags else "last end"))
        elif self.take("\\"):
            self._escape()
        elif self.next in {"*", "+", "?"}:
            raise self.fault(f"nothing before {self.next}", hint=f"For the character itself write \\\\{self.next}.")
        else:
            self._take_character(self.next)
            self.position += 1
        return True

    def _group(self, depth: int) -> bool:
        slot = None
        if self.take("?"):
            if match := re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self.pattern, self.position):
                self.position = match.end()
                slot = self._open_group()
                self.program.names[match[1]] = slot
            elif match := re.compile(r"([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])").match(self.pattern, self.position):
                self.position = match.end()
                return self._flagged(match, depth)
            elif match := re.compile("<?[=!]").match(self.pattern, self.position):
                self.position = match.end()
                self._look(match[0], depth)
                return True
            else:
                raise self.fault("a group of an unknown kind", hint="Atomic groups are not supported.")
        else:
            slot = self._open_group()
        self.add(Save(2 * slot))
        self.alternatives(depth + 1)
        self._close_group()
        self.add(Save(2 * slot + 1))
        return True

    def _look(self, kind: str, depth: int) -> None:
        """A program of its own. Groups inside it are counted, but remember nothing."""
        outer, self.program = self.program, Program(groups=self.program.groups, names=self.program.names)
        self.alternatives(depth + 1)
        self.add(Done())
        inner, self.program = self.program, outer
        self.program.groups = inner.groups
        self._close_group()
        self.add(Look(inner, ahead="<" not in kind, wanted="=" in kind))

    def _open_group(self) -> int:
        self.program.groups += 1
        return self.program.groups

    def _close_group(self) -> None:
        if not self.take(")"):
            raise self.fault("a ( without a )")

    def _flagged(self, match: re.Match[str], depth: int) -> bool:
        on, off = frozenset(match[1]), frozenset(match[2] or "")
        if not (on | off) <= _FLAGS:
            raise self.fault(f"the flags {match[0]}", hint="There are i, s and m.")
        outer = self._flags
        self._flags = (self._flags | on) - off
        if match[3] == ")":
            return False
        self.alternatives(depth + 1)
        self._close_group()
        self._flags = outer
        return True

    def _repeated(self, start: int) -> None:
        """The quantifier after an atom, if there is one."""
        if match := _BOUNDS.match(self.pattern, self.position):
            least = int(match[1])
            most = int(match[3]) if match[3] else None if match[2] else least
            self.position = match.end()
        elif self.take("*"):
            least, most = 0, None
        elif self.take("+"):
            least, most = 1, None
        elif self.take("?"):
            least, most = 0, 1
        else:
            return
        if most is not None and most < least:
            raise self.fault("bounds in the wrong order")
        lazy = self.take("?")
        if not lazy and self.next == "+":
            raise self.fault("a possessive quantifier", hint="Leave out the second +.")
        body = self.program.instructions[start:]
        if len(body) * max(most or 0, least, 1) > _LONGEST:
            raise Fault(f"the regular expression '{self.pattern:.60}' is too large")
        del self.program.instructions[start:]
        for _ in range(least):
            self._again(body, self._here - start)
        if most is None:
            self._loop(body, start, lazy=lazy)
        else:
            self._at_most(body, start, most - least, lazy=lazy)

    def _loop(self, body: list[Instruction], start: int, *, lazy: bool) -> None:
        fork = Fork()
        entry = self.add(fork)
        self._again(body, self._here - start)
        self.add(Jump(entry))
        fork.first, fork.second = (self._here, entry + 1) if lazy else (entry + 1, self._here)

    def _at_most(self, body: list[Instruction], start: int, times: int, *, lazy: bool) -> None:
        forks = []
        for _ in range(times):
            fork = Fork()
            forks.append((fork, self.add(fork) + 1))
            self._again(body, self._here - start)
        for fork, inside in forks:
            fork.first, fork.second = (self._here, inside) if lazy else (inside, self._here)

    def _take_test(self, test: Test) -> None:
        if "i" in self._flags:
            self.add(Take(lambda c: test(c) or test(c.lower()) or test(c.upper())))
        else:
            self.add(Take(test))

    def _take_character(self, character: str) -> None:
        self._take_test(character.__eq__)

    def _escape(self) -> None:
        """What follows a backslash outside of a class."""
        letter = self.next
        places = {"b": "word edge", "B": "no word edge", "A": "start", "z": "end", "Z": "last end"}
        if letter in places:
            self.position += 1
            self.add(Assert(places[letter]))
        elif letter == "Q":
            end = self.pattern.find("\\E", self.position)
            quoted = self.pattern[self.position + 1 : end if end >= 0 else len(self.pattern)]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            for character in quoted:
                self._take_character(character)
        elif letter.isdigit() and letter != "0":
            raise self.fault("a backreference", hint="Groups cannot be repeated by number in a pattern.")
        else:
            self._take_test(self.escaped())
