"""Which values of the settings and of our own environment are secrets, and which variables hold one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from dalsegno.settings import ENVIRONMENT_PREFIX, Settings

#: Shorter ones are no secrets, and would be found in every other word.
_SHORTEST_SECRET = 6
_SECRET_NAME = re.compile(r"secret|password|token|credential|key", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/@]*:([^/@]+)@")
#: Variables that are for dalsegno alone, whatever they hold: settings, the store's password, a collector's token.
_OWN_VARIABLES = (f"{ENVIRONMENT_PREFIX}*", "PGPASSWORD", "PGPASSFILE", "OTEL_EXPORTER_OTLP*HEADERS")


def secret_values(settings: Settings, *, with_catalogs: bool = True) -> list[str]:
    """Every value that must not be shown; without those of catalogs, all that Spark need not know."""
    found: list[str | None] = [*settings.secrets.values()]
    found += [value for name, value in os.environ.items() if name.startswith(f"{ENVIRONMENT_PREFIX}SECRET_")]
    for channel in settings.notifications.values():
        found += [channel.url, channel.password, *channel.headers.values()]
    urls = [settings.store, *(each.url for each in settings.connections.values())]
    if with_catalogs:
        for catalog in settings.catalogs.values():
            for properties in (catalog.properties, catalog.pyiceberg, catalog.spark):
                found += [value for name, value in properties.items() if _SECRET_NAME.search(name)]
        urls += [each.uri for each in settings.catalogs.values() if each.uri]
    found += [match[1] for url in urls if (match := _PASSWORD.search(url))]
    return [secret for secret in found if secret and len(secret) >= _SHORTEST_SECRET]


def without_secrets(environment: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Variables without dalsegno's own and without those that hold a secret of the settings."""
    secrets = secret_values(settings, with_catalogs=False)
    return {
        name: value
        for name, value in environment.items()
        if not is_own(name) and not any(secret in value for secret in secrets)
    }


def is_own(name: str) -> bool:
    """Whether a variable is for dalsegno alone."""
    return any(fnmatchcase(name, pattern) for pattern in _OWN_VARIABLES)
