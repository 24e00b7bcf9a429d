"""Servers that Maven repositories have as archives: fetched once by the resolver of the jars, checked, unpacked."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dalsegno.spark.cache import cache_folder, locked
from dalsegno.spark.jars import listed, resolve, say
from dalsegno.spark.java import find_java
from scripts import setup

#: What tests install for themselves; `make clean` removes it.
INSTALLED = setup.ROOT / ".cache"


@dataclass(frozen=True)
class Archive:
    group: str
    artifact: str
    version: str
    #: tar.gz or zip.
    extension: str
    sha256: str

    def unpacked(self) -> Path:
        """The folder with its content, which is fetched if it is missing."""
        folder = INSTALLED / f"{self.artifact}-{self.version}"
        if folder.exists():
            return folder
        INSTALLED.mkdir(exist_ok=True)
        waiting = partial(say, f"Another process is fetching {self.artifact}; waiting for it.", sys.stderr)
        with locked(cache_folder() / "ivy.lock", on_wait=waiting):
            if not folder.exists():
                draft = folder.with_suffix(".draft")
                shutil.rmtree(draft, ignore_errors=True)
                self._unpack(self._fetched(), draft)
                # They hold one folder, which is called after the artifact and its version.
                [content] = draft.iterdir()
                content.replace(folder)
                draft.rmdir()
        return folder

    def _unpack(self, fetched: Path, folder: Path) -> None:
        if self.extension == "zip":
            # Unlike shutil's way, it does not leave out names with two dots, which jars of Trino have.
            with zipfile.ZipFile(fetched) as content:
                content.extractall(folder)
        else:
            with tarfile.open(fetched) as content:
                content.extractall(folder, filter="data")

    def _fetched(self) -> Path:
        listing = INSTALLED / f"{self.artifact}-{self.version}.txt"
        if not listed(listing):
            resolve(
                self._ivy_module(),
                listing,
                find_java(),
                what=f"{self.artifact} {self.version} for tests (some 100 MB)",
                progress=sys.stderr,
            )
        [path] = listed(listing)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            path.unlink()
            raise RuntimeError(f"{self.artifact} has the SHA-256 {found}, expected {self.sha256}; it was removed.")
        return path

    def _ivy_module(self) -> str:
        name = f'org="{self.group}" name="{self.artifact}" rev="{self.version}"'
        file = f'<artifact name="{self.artifact}" type="{self.extension}" ext="{self.extension}"/>'
        return f"""<ivy-module version="2.0">
  <info organisation="dalsegno" module="archives"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency {name} transitive="false" conf="default->default">{file}</dependency>
  </dependencies>
</ivy-module>
"""
