#!/usr/bin/env bash
# CTest case check.alignment: the quick tests with an operator new that gives
# no more alignment than it must. What keeps an over-aligned type, as Tensor,
# in memory of the plain one crashes then, every time.
# usage: alignment.sh TEST_BINARY...
set -euo pipefail

# tests/failing_new.cpp reads it; tests/graph/allocator_test.cpp sees that it
# did, so that this is no check of nothing.
export TAGFLOW_MISALIGNED_NEW=1
for binary in "$@"; do
  echo "$(basename "$binary"):"
  # Tests look for their data, and for graphs, from there.
  (cd "$(dirname "$binary")" &&
    "$binary" --source-file-exclude='*_slow_test.cpp')
done
