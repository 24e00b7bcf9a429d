"""A model in Python, which is not imported."""

from typing import Any


def model(dbt: Any, session: Any) -> Any:
    dbt.config(materialized="table")
    return dbt.ref("customers")
