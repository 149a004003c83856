#!/usr/bin/env bash
# CTest case check.shared, if TAGFLOW_SHARED_CHECK is on: runs the projects of
# consumer.sh with shared libraries, and with static ones that are
# position-independent. Builds each in its own folder below BUILD_DIR.
# usage: shared.sh CMAKE BUILD_DIR CXX
set -euo pipefail
cmake=$1 build=$2 cxx=$3
top=$(cd "$(dirname "$0")/../.." && pwd)

for option in BUILD_SHARED_LIBS CMAKE_POSITION_INDEPENDENT_CODE; do
  echo "$option"
  "$cmake" -S "$top" -B "$build/$option" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" "-D$option=ON" \
    -DTAGFLOW_BUILD_TESTS=OFF -DTAGFLOW_BUILD_APPS=OFF
  "$cmake" --build "$build/$option" --parallel "$(nproc)"
  bash "$top/tests/checks/consumer.sh" "$cmake" "$build/$option" "$cxx" ON
done
