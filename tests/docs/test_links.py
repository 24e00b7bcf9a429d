"""No link inside the documentation leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, all_pages, prose

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
#: What pages may name: the public homes of what they speak of, made-up hosts, and the folder of the examples.
_HOSTS = re.compile(r"(127\.0\.0\.1|iceberg\.apache\.org|keepachangelog\.com|semver\.org|[\w.]+\.internal)(:\d+)?")
_FOLDERS = ("srv/lake",)


def anchors(page: Path) -> set[str]:
    """What headings can be linked by, as GitHub makes it: small letters, dashes for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in all_pages()])
def test_links(name: str) -> None:
    page = ROOT / name
    broken = []
    for link in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken, broken


@pytest.mark.parametrize("name", [str(page.relative_to(ROOT)) for page in all_pages()])
def test_no_page_names_a_machine(name: str) -> None:
    """Neither a host of somebody's own, such as a registry, nor a folder that is only here."""
    text = (ROOT / name).read_text(encoding="utf-8")
    hosts = re.findall(r"(?:https?|thrift|postgresql)://(?:[^\s/@]*@)?([\w.-]+(?::\d+)?)", text)
    assert [host for host in hosts if not _HOSTS.fullmatch(host)] == []
    folders = re.findall(r"(?<![\w.~*}/…>-])/((?:home|Users|root|tmp|work|srv|opt|mnt|var|usr)/[\w-]+)", text)
    assert [folder for folder in folders if folder not in _FOLDERS] == []


def test_every_page_can_be_reached() -> None:
    """From the README, by links alone."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for link in _LINK.findall(prose(page.read_text(encoding="utf-8"))):
            if "://" not in link:
                target = (page.parent / link.partition("#")[0]).resolve()
                waiting += [target] if target.is_file() else []
    assert set(all_pages()) <= seen, [str(page) for page in set(all_pages()) - seen]
