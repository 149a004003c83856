#!/usr/bin/env bash
# From a bare Debian 12 to every test and check: installs what is missing,
# builds Release, runs CTest. Ends with CTest's summary and its exit status.
# usage: tests/run.sh [ARGUMENTS OF ctest]      for example: -L smoke
set -euo pipefail
cd "$(dirname "$0")/.."

bash apps/setup.sh test
cmake --preset release -DTAGFLOW_BUILD_TESTS=ON
cmake --build --preset release
exec ctest --preset release --parallel "$(nproc)" "$@"
