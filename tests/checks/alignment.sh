#!/usr/bin/env bash
# CTest case check.alignment: the quick tests with an operator new that returns
# the minimal alignment. Code that keeps an over-aligned type, such as Tensor,
# in memory of plain operator new then always crashes.
# usage: alignment.sh TEST_BINARY...
set -euo pipefail

# tests/failing_new.cpp reads it, and tests/graph/allocator_test.cpp checks that
# it did.
export TAGFLOW_MISALIGNED_NEW=1
for binary in "$@"; do
  echo "$(basename "$binary"):"
  # Tests look for their data, and for graphs, from there.
  (cd "$(dirname "$binary")" &&
    "$binary" --source-file-exclude='*_slow_test.cpp')
done
