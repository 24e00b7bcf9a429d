"""Catalogs that captures cannot work with are refused by name, with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dalsegno import Lake
from dalsegno.errors import UserError
from dalsegno.settings import CatalogSettings, CatalogType
from tests.iceberg.support import settings_with
from tests.lakes.vending import Answer, Request, serving

#: As Nessie 0.99 answers it.
NESSIE = {
    "defaults": {"prefix": "main", "io-impl": "org.apache.iceberg.io.ResolvingFileIO"},
    "overrides": {
        "nessie.default-branch.name": "main",
        "nessie.is-nessie-catalog": "true",
        "nessie.prefix-pattern": "{ref}|{warehouse}",
    },
}


def nessie(_: Request) -> Answer:
    return 200, [("Content-Type", "application/json")], json.dumps(NESSIE).encode()


def test_nessie(tmp_path: Path) -> None:
    with serving(nessie) as uri:
        settings = settings_with(tmp_path, CatalogSettings("prod", type=CatalogType.REST, uri=uri))
        with Lake.open(settings) as lake:
            with pytest.raises(UserError, match="'prod' is served by Nessie, which is not supported: it shows only"):
                lake.capture("db.t", consumer="c")
            (report,) = lake.check_catalogs()
            assert not report.works
            assert "Nessie" in report.abilities[0].says
