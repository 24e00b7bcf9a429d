"""Values of random histories: ordinary ones, which meet each other, and the extreme ones of every type."""

from __future__ import annotations

import random

#: Types of which a history may have columns; what a table is born with, it has beside its five own ones.
KINDS = [
    "int",
    "string",
    "float",
    "double",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
    "decimal(4, 2)",
    "decimal(38, 10)",
    "array<int>",
    "struct<a: int, b: string>",
]
#: Such names are quoted wherever they stand.
ODD_NAMES = ["a.b {}", "it's {}", 'say "{}"', "tick`{}", "semi;{}", "😀 {}", "select{}", "%s{}", "_change_ordinal{}"]

_DAYS = ["0001-01-01", "1582-10-10", "1969-12-31", "2026-11-15", "+10000-01-01", "-0001-12-31"]
_LITERALS = {
    "boolean": ["true", "false"],
    "date": [f"date'{day}'" for day in _DAYS] + ["date'+5881580-07-11'"],
    "timestamptz": [f"timestamp'{day} 23:59:59.999999Z'" for day in _DAYS],
    "timestamp_ntz": [f"timestamp_ntz'{day} 00:00:00'" for day in _DAYS],
    "binary": ["X''", "X'00'", "X'FF'", "X'2700FF'"],
    "string": ["''", "'None'", "'null'", "'it\\'s'", "'😀'", "'d1/d2=%'"],
    "float": ["float('nan')", "float('infinity')", "float('-infinity')", "float('-0.0')", "float('1e-45')"],
    "double": ["double('nan')", "double('-infinity')", "-0.0D", "1.7976931348623157E308D"],
    "int": ["2147483647", "-2147483648"],
    "long": ["9223372036854775807", "-9223372036854775808"],
}


def extreme(kind: str, chance: random.Random) -> str:
    """One of the ends of a type, as Iceberg calls it."""
    if kind.startswith("decimal"):
        precision, scale = (int(part) for part in kind.removeprefix("decimal(").rstrip(")").split(","))
        digits = "9" * precision
        whole, fraction = digits[: precision - scale] or "0", digits[precision - scale :]
        least = "0." + "0" * (scale - 1) + "1" if scale else "1"
        return chance.choice([f"{whole}.{fraction}BD", f"-{whole}.{fraction}BD", f"-{least}BD", "0BD"])
    # Iceberg calls the one without a zone "timestamp", which in Spark is the one with a zone.
    return chance.choice(_LITERALS["timestamp_ntz" if kind == "timestamp" else kind])


def readable(name: str, kind: object) -> str:
    """A column in a form that Python has for all of its values."""
    quoted = "`" + name.replace("`", "``") + "`"
    is_far = isinstance(kind, str) and kind.startswith(("date", "timestamp"))
    return f"cast({quoted} as string) as {quoted}" if is_far else quoted
