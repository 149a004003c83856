#!/usr/bin/env bash
# CTest case check.shared, if TAGFLOW_SHARED_CHECK is on: runs the projects of
# consumer.sh with shared libraries, which it builds in BUILD_DIR/shared.
# usage: shared.sh CMAKE BUILD_DIR CXX
set -euo pipefail
cmake=$1 build=$2 cxx=$3
top=$(cd "$(dirname "$0")/../.." && pwd)

"$cmake" -S "$top" -B "$build/shared" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DBUILD_SHARED_LIBS=ON -DTAGFLOW_BUILD_TESTS=OFF -DTAGFLOW_BUILD_APPS=OFF
"$cmake" --build "$build/shared" --parallel "$(nproc)"
bash "$top/tests/checks/consumer.sh" "$cmake" "$build/shared" "$cxx"
