#!/usr/bin/env bash
# CTest case check.asan: the short pass with AddressSanitizer and UBSan, over
# parsers, validation, and code that passes tensors on. It links the kernels of
# the build that it checks, compiled for the same processor. `cmake --preset
# asan` checks the whole tree with its kernels.
# usage: asan.sh CMAKE BUILD_DIR DEVICES_LIBRARY NATIVE
set -euo pipefail
source "$(dirname "$0")/sanitizer.sh"

cmake_options=("-DTAGFLOW_PREBUILT_DEVICES=$3" "-DTAGFLOW_NATIVE=$4")
tests='malformed|graphdef|unknown_inputs|validate|graph/tensor_test'
sanitizer_pass asan "$1" "$2" 'graph|actors|net|fuzz' \
  "$tests|tests/actors/|tests/net/" \
  graph_tests actors_tests net_tests fuzz_targets
