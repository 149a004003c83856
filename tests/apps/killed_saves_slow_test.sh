#!/usr/bin/env bash
# CTest case apps/killed_saves_slow: a training that is killed a few hundred
# times, at any moment of a save, goes on each time from a whole checkpoint.
set -euo pipefail
exec python3 "$(dirname "$0")/killed_saves.py" "${TAGFLOW_BIN:?}"
