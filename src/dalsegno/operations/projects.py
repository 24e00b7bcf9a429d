"""A new project: settings, an example model, and data for it, so that it runs at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dalsegno.errors import UserError

_SETTINGS = """\
# What is not set here has a default: see docs/reference/settings.md. Everything is kept in .dalsegno beside this file.

# default_catalog = "lake"
# default_namespace = "shop"

# [catalogs.lake]
# type = "rest"
# uri = "https://catalog.example.com"
"""
_SEED = """\
# Data to try the example with. Remove it when you read tables of your own.
Workflow:
  id: seed
  jobs:
    - job:
        id: orders
        type: Spark
        spark:
          script: |
            CREATE NAMESPACE IF NOT EXISTS lake.shop;
            CREATE TABLE IF NOT EXISTS lake.shop.orders (id BIGINT, customer STRING, amount BIGINT, day DATE)
              USING iceberg PARTITIONED BY (day);
            INSERT INTO lake.shop.orders VALUES
              (1, 'ada', 10, DATE'2026-11-01'), (2, 'bob', 20, DATE'2026-11-02'), (3, 'ada', 5, DATE'2026-11-02')
"""
_MODEL = """\
-- partitioned by: day
-- schedule: on change
SELECT day, sum(amount) AS amount, count(*) AS orders
FROM lake.shop.orders
GROUP BY day
"""
_README = """\
# A dalsegno project

Each file in `models/` is a plain SELECT. dalsegno keeps its table up to date with what changed in the tables it reads.

    dalsegno run seed.yaml                                 # write example rows; run it again for more
    dalsegno run models                                    # bring all models up to date
    dalsegno sql 'SELECT * FROM lake.shop.orders_by_day'   # look at the result
    dalsegno run models --select orders_by_day             # one model; +NAME, NAME+ with its neighbours
    dalsegno server                                        # run models by their schedules
"""
#: By name; what one reads first comes first.
_FILES = {
    "README.md": _README,
    "dalsegno.toml": _SETTINGS,
    "models/shop/orders_by_day.sql": _MODEL,
    "seed.yaml": _SEED,
    ".gitignore": ".dalsegno/\n",
}


@dataclass(frozen=True)
class CreatedProject:
    folder: str
    #: Files, from the folder.
    created: tuple[str, ...]
    #: Those that were there already.
    kept: tuple[str, ...]


def create_project(folder: Path) -> CreatedProject:
    """Write the files that are not there."""
    created, kept = [], []
    for name, text in _FILES.items():
        file = folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError:
            if not file.exists() and not file.is_symlink():
                raise UserError(f"{file.parent} is not a folder.") from None
            kept.append(name)
        except OSError as error:
            raise UserError(f"{file} cannot be written: {error.strerror}.") from error
        else:
            created.append(name)
    return CreatedProject(str(folder), tuple(created), tuple(kept))
