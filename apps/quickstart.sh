#!/usr/bin/env bash
# From a bare Debian 12 to the main job on real data: installs what is
# missing, builds Release, and runs kmeans.
# usage: apps/quickstart.sh [ARGUMENTS OF kmeans]
set -euo pipefail
cd "$(dirname "$0")/.."

bash apps/setup.sh build
cmake --preset release -DTAGFLOW_BUILD_TESTS=OFF >&2
cmake --build --preset release --target kmeans >&2
exec build/release/apps/kmeans "$@"
