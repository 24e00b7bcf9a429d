"""No secret gets through, wherever its text is cut."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dalsegno.steps.supervision import shown_forms
from dalsegno.steps.supervisor import Log, Mask

#: Few letters, so that secrets overlap, repeat and begin like each other.
texts = st.text("ab", max_size=30).map(str.encode)
secrets = st.lists(st.text("ab", min_size=1, max_size=6).map(str.encode), max_size=3)


def masked(text: bytes, hidden: list[bytes]) -> bytes:
    """The same, the slow way: byte by byte, with the whole text at hand."""
    shown, secret_until = b"", 0
    for at in range(len(text)):
        ends = [at + len(secret) for secret in hidden if text.startswith(secret, at)]
        if ends and at >= secret_until:
            shown += b"***"
        secret_until = max([secret_until, *ends])
        if at >= secret_until:
            shown += text[at : at + 1]
    return shown


@given(texts, secrets, st.lists(st.integers(0, 5), max_size=20))
@example(b"xab", [b"xab", b"abc"], [1, 1])
@example(b"xaab", [b"xa", b"aab"], [2, 1])
@example(b"abcdef", [b"abc", b"abcdef"], [3])
@example(b"aaaaaaaaaa", [b"aaaa"], [1] * 10)
def test_chunks_make_no_difference(text: bytes, hidden: list[bytes], cuts: list[int]) -> None:
    mask = Mask(hidden)
    shown, rest = b"", text
    for cut in cuts:
        shown += mask.feed(rest[:cut])
        rest = rest[cut:]
    shown += mask.feed(rest, last=True)
    assert shown == masked(text, hidden)


@given(texts, secrets)
def test_only_what_may_be_a_secret_is_held_back(text: bytes, hidden: list[bytes]) -> None:
    mask = Mask(hidden)
    mask.feed(text)
    assert len(mask.held) < max([1, *map(len, hidden)])


def test_forms_of_a_secret() -> None:
    secret = 'p"ss\nlong enough line/é'
    assert shown_forms(secret) >= {
        secret,
        "long enough line/é",
        'p\\"ss\\nlong enough line/\\u00e9',
        'p\\"ss\\nlong enough line/é',
        "p%22ss%0Along%20enough%20line%2F%C3%A9",
    }
    assert shown_forms("") == set()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=400), max_size=30), st.integers(1, 3000))
def test_the_log_keeps_beginning_and_end(chunks: list[bytes], limit: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        log = Log(str(path), limit, [])
        for chunk in chunks:
            log.feed(chunk)
        log.close()
        written = path.read_bytes()
    everything = b"".join(chunks)
    head, tail = everything[: limit - limit // 4], everything[limit - limit // 4 :]
    if not tail:
        assert written == everything
        return
    assert written.startswith(head)
    kept = tail[-(limit // 4) :] if limit // 4 else b""
    assert written.endswith(kept)
    assert log.left_out == len(tail) - len(kept)
    assert len(written) < len(head) + len(kept) + 200
