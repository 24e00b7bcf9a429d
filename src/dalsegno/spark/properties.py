"""Spark's configuration as a file, because what is given as arguments can be read by others."""

from __future__ import annotations

from collections.abc import Mapping


def as_properties(conf: Mapping[str, str]) -> str:
    """Java's format, in which hardly a character but letters stands for itself."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items())


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes)
