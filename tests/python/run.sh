#!/usr/bin/env bash
# CTest case python/package: builds the wheel, installs it into the environment
# build/python_env, and runs the tests there. Skipped (77) where the packages
# that this needs are neither there nor to be had.
# usage: run.sh [ARGUMENTS OF pytest]
set -euo pipefail
cd "$(dirname "$0")/../.."

bash python/build.sh
exec build/python_env/bin/python -m pytest -q -c python/pyproject.toml \
  --rootdir . "$@"
