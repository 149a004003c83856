#!/usr/bin/env bash
# Measures which lines of graph/, actors/, autodiff/ and net/ the tests run:
# builds without optimisation and with counters in build/coverage, runs the tests
# that are not slow, prints a table by folder, and fails if a folder has less
# than 90 %.
# The kernels are those of the release build, without counters.
# usage: tests/coverage.sh [--missing]
#   --missing   also lists, file by file, the lines that no test runs
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/coverage

bash apps/setup.sh test
cmake --preset release -DTAGFLOW_BUILD_TESTS=ON >/dev/null
cmake --build --preset release --target tagflow_devices
# Threads count at the same time, and no count may be lost.
cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG="-O0 --coverage -fprofile-update=atomic" \
  -DTAGFLOW_PREBUILT_DEVICES="$PWD/build/release/lib/libtagflow_devices.a" \
  -DTAGFLOW_BUILD_TESTS=ON -DTAGFLOW_BUILD_APPS=OFF -DTAGFLOW_CHECKS=OFF \
  >/dev/null
cmake --build "$build" --target \
  graph_tests actors_tests autodiff_tests net_tests apps_tests \
  reference_tests

# Counts of an earlier run or version of the sources are removed.
find "$build" -name '*.gcda' -delete
ctest --test-dir "$build" --parallel "$(nproc)" --output-on-failure \
  --no-tests=error --label-exclude '^slow$' \
  --label-regex '^(graph|actors|autodiff|net|apps|reference)$'
exec python3 tests/coverage.py "$build" "$@" graph actors autodiff net
