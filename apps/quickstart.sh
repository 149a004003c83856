#!/usr/bin/env bash
# From a bare Debian 12 to the main jobs on real data: installs what is missing,
# builds Release, runs kmeans, and trains an LSTM for about a minute. What only
# the LSTM needs, many kernels among it, is compiled after kmeans has made its
# pictures.
# usage: apps/quickstart.sh [ARGUMENTS OF kmeans]
set -euo pipefail
cd "$(dirname "$0")/.."

bash apps/setup.sh build
cmake --preset release -DTAGFLOW_BUILD_TESTS=OFF -DTAGFLOW_KERNELS=basic >&2
cmake --build --preset release --target kmeans >&2
build/release/apps/kmeans "$@"
cmake --preset release -DTAGFLOW_BUILD_TESTS=OFF >&2
cmake --build --preset release --target train_images >&2
exec build/release/apps/train_images lstm --epochs 4 --save out/quickstart_lstm \
  --fresh
