#!/usr/bin/env bash
# CTest case apps/readme: the code and commands of README.md, ARCHITECTURE.md
# and docs/*.md are real.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
exec python3 "$top/tests/apps/readme.py" "$top" "${TAGFLOW_BIN:?}"
