"""The cache of files that never change: bounded, checked, shared by processes, and never in the way."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dalsegno.iceberg.metadata_cache import MetadataCache

LIMIT = 100_000


@pytest.fixture
def cache(tmp_path: Path) -> MetadataCache:
    return MetadataCache(tmp_path / "cache", LIMIT)


def files_of(cache: MetadataCache) -> list[Path]:
    return sorted(path for path in cache.folder.rglob("*") if path.is_file())


def test_what_was_put_is_got(cache: MetadataCache) -> None:
    assert cache.get("s3://b/é 'm0.avro") is None
    cache.put("s3://b/é 'm0.avro", b"content")
    assert cache.get("s3://b/é 'm0.avro") == b"content"
    assert cache.get("s3://b/é 'm0.avro", length=7) == b"content"
    assert MetadataCache(cache.folder, LIMIT).get("s3://b/é 'm0.avro") == b"content"
    assert cache.get("s3://b/other") is None


def test_another_length_counts_as_missing(cache: MetadataCache) -> None:
    cache.put("a", b"content")
    assert cache.get("a", length=8) is None
    assert cache.get("a") is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 39])
def test_a_damaged_file_counts_as_missing(cache: MetadataCache, damage: bytes) -> None:
    cache.put("a", b"content")
    (stored,) = files_of(cache)
    stored.write_bytes(damage)
    assert cache.get("a") is None
    assert files_of(cache) == []


def test_a_file_under_another_name_is_not_taken_for_it(cache: MetadataCache) -> None:
    cache.put("a", b"content of a")
    cache.put("b", b"content of b")
    first, second = files_of(cache)
    first.write_bytes(second.read_bytes())
    assert {cache.get("a"), cache.get("b")} in ({None, b"content of a"}, {None, b"content of b"})


def test_it_stays_within_its_limit_and_keeps_what_is_used(cache: MetadataCache) -> None:
    for number in range(60):
        cache.put(f"file {number}", bytes(5_000))
        os.utime(cache._path(f"file {number}"), (number, number))
        assert cache.get("file 0") is not None, "what is used stays"
    size = sum(path.stat().st_size for path in files_of(cache))
    assert size <= LIMIT + LIMIT // 8
    assert cache.get("file 59") is not None
    assert cache.get("file 1") is None


def test_a_file_that_is_too_large_is_left_out(cache: MetadataCache) -> None:
    cache.put("large", bytes(LIMIT))
    assert files_of(cache) == []


def test_only_its_user_can_read_it(cache: MetadataCache) -> None:
    cache.put("a", b"content")
    (stored,) = files_of(cache)
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    cache = MetadataCache(tmp_path / "cache", LIMIT)
    cache.put("a", b"content")
    assert cache.get("a") is None


def test_many_at_once(tmp_path: Path) -> None:
    caches = [MetadataCache(tmp_path / "cache", LIMIT) for _ in range(4)]

    def use(number: int) -> None:
        identity, content = f"file {number % 30}", bytes([number % 30]) * 4_000
        caches[number % 4].put(identity, content)
        assert caches[(number + 1) % 4].get(identity) in (content, None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(400)))
    assert not [path for path in files_of(caches[0]) if "." in path.name], "no draft is left"
