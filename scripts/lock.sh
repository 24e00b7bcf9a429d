#!/bin/sh
# Writes requirements/*.txt from pyproject.toml: exact versions and hashes for every platform, no addresses.
# Releases younger than five days are left out: a hijacked package is usually found and removed sooner than that.
# Takes the path of uv. Extra arguments go to uv, for instance --upgrade.
set -eu
cd "$(dirname "$0")/.."
uv=$1
shift

lock() {
    name=$1
    shift
    echo "locking requirements/$name.txt" >&2
    UV_CUSTOM_COMPILE_COMMAND="make lock" "$uv" pip compile --quiet --universal --generate-hashes \
        --no-emit-index-url --exclude-newer "5 days" --python-version 3.11 "$@" --output-file "requirements/$name.txt"
}

lock bootstrap --group bootstrap "$@"
lock build --group build "$@"
lock dev pyproject.toml --extra spark --extra java --extra notebook --extra postgres --extra server \
    --extra hive --extra adls --group dev "$@"
# The demo takes what development takes, less of it: one set of versions to test and to show.
lock demo pyproject.toml --extra spark --extra java --extra server --constraint requirements/dev.txt "$@"
# Only to compare with, in an environment of its own: see benchmarks/beside_dagster.py.
lock dagster --group dagster "$@"
# Only the Java of the Trino that make prove-lakes starts: see tests/lakes/trino.py.
lock trino --group trino "$@"
