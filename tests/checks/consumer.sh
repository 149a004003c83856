#!/usr/bin/env bash
# CTest case check.consumer: what `cmake --install` leaves is enough for a
# project that knows nothing of this tree. tests/consumer is that project.
# usage: consumer.sh CMAKE BUILD_DIR CXX
set -euo pipefail
cmake=$1 build=$2 cxx=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/prefix" >/dev/null
# Out of the tree, so that no header of it can be found by accident.
cp -r "$top/tests/consumer" "$scratch/consumer"
"$cmake" -S "$scratch/consumer" -B "$scratch/build" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_PREFIX_PATH="$scratch/prefix"
"$cmake" --build "$scratch/build"
"$scratch/build/consumer"
