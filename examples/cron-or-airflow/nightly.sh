#!/bin/sh
# Capture, process, commit. If the job fails, nothing is committed, and the next night gets the same range again.
set -eu
cd "$(dirname "$0")"

answer=$(dalsegno capture media.playback --consumer nightly --changes before_after --key id --partitions --json)
capture=$(echo "$answer" | python -c 'import json, sys; print(json.load(sys.stdin)["capture"] or "")')
if [ -z "$capture" ]; then
    echo "nothing new"
    exit 0
fi

dalsegno query "$capture" --engine duckdb > changes.sql
python process.py changes.sql
dalsegno commit "$capture"
