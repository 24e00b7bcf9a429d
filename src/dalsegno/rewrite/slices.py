"""Parts of the user's own text: the output expressions of a SELECT, and what stands behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalsegno.rewrite.texts import QueryText
from dalsegno.spark.statements import Token, tokens_of

#: Words that end the FROM and WHERE of a SELECT.
_ENDS = frozenset({"GROUP", "HAVING", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "UNION"})
_ENDS |= {"EXCEPT", "MINUS", "INTERSECT"}


@dataclass(frozen=True)
class Span:
    """From where to where a part of the text goes."""

    start: int
    end: int


@dataclass(frozen=True)
class SelectSlices:
    """The outermost SELECT of a query: where its output expressions stand, and the rest of it up to GROUP BY."""

    #: From the word SELECT, hints excluded.
    list_start: int
    #: Each output without its name.
    outputs: tuple[Span, ...]
    #: From FROM to before GROUP BY.
    source: Span

    @classmethod
    def of(cls, text: QueryText) -> SelectSlices | None:
        """None if the text is not one plain SELECT, perhaps behind WITH."""
        tokens = list(tokens_of(text.text))
        depths = _depths(tokens)
        top = [at for at, depth in enumerate(depths) if depth == 0]
        selects = [at for at in top if tokens[at].word == "SELECT"]
        froms = [at for at in top if tokens[at].word == "FROM"]
        if len(selects) != 1 or len(froms) != 1 or froms[0] < selects[0]:
            return None
        begin = selects[0] + 1
        if begin < len(tokens) and tokens[begin].text == "/":
            begin = (
                next(
                    at
                    for at in range(begin, len(tokens) - 1)
                    if tokens[at].text == "*" and tokens[at + 1].text == "/" and at > begin + 2
                )
                + 2
            )
        ends = [at for at in top if at > froms[0] and tokens[at].word in _ENDS]
        behind = tokens[ends[0]].start if ends else len(text.text)
        commas = [at for at in top if begin <= at < froms[0] and tokens[at].word == ","]
        outputs = [
            _unnamed(tokens, depths, one, other)
            for one, other in zip([begin, *(at + 1 for at in commas)], [*commas, froms[0]], strict=True)
        ]
        return cls(tokens[begin].start, tuple(outputs), Span(tokens[froms[0]].start, behind))


def _depths(tokens: Sequence[Token]) -> list[int]:
    """How many parentheses, brackets or CASEs are open at each token."""
    found, depth = [], 0
    for token in tokens:
        if token.word in (")", "]", "END"):
            depth -= 1
        found.append(depth)
        if token.word in ("(", "[", "CASE"):
            depth += 1
    return found


def _unnamed(tokens: Sequence[Token], depths: Sequence[int], begin: int, end: int) -> Span:
    """An output without ``AS name``."""
    words = [at for at in range(begin, end) if depths[at] == 0 and tokens[at].word == "AS"]
    last = end - 1
    if words:
        last = words[-1] - 1
    elif last > begin and _is_name(tokens[last]) and _ends_operand(tokens[last - 1]):
        # ``x name``
        last -= 1
    return Span(tokens[begin].start, tokens[last].start + len(tokens[last].text))


def _is_name(token: Token) -> bool:
    return token.text.startswith("`") or (token.word.isidentifier() and token.word != "END")


def _ends_operand(token: Token) -> bool:
    return _is_name(token) or token.word in (")", "]", "END") or token.word[:1].isdigit() or not token.word


def distinct_argument(text: QueryText, output: Span) -> Span | None:
    """The x of ``COUNT(DISTINCT x)``; None if it has several."""
    tokens = [token for token in tokens_of(text.text) if output.start <= token.start < output.end]
    words = [token.word for token in tokens]
    if words[:3] != ["COUNT", "(", "DISTINCT"] or words[-1] != ")":
        return None
    inner, depths = tokens[3:-1], _depths(tokens[3:-1])
    if not inner or any(depth == 0 and token.word == "," for token, depth in zip(inner, depths, strict=True)):
        return None
    return Span(inner[0].start, inner[-1].start + len(inner[-1].text))


def closing_parenthesis(text: str, start: int) -> int | None:
    """Where a call ends that begins with its function's name."""
    depth = 0
    for token in tokens_of(text):
        if token.start < start:
            continue
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if token.word == ")" and depth == 0:
            return token.start + 1
        if depth == 0 and token.start > start:
            return None
    return None
