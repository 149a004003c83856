#!/usr/bin/env bash
# CTest case check.asan: the short pass with AddressSanitizer and UBSan, over
# what parses, what refuses, and what hands tensors on. It links the kernels of
# the build that it checks, compiled for the same processor; the whole tree
# with its kernels is `cmake --preset asan`.
# usage: asan.sh CMAKE BUILD_DIR DEVICES_LIBRARY NATIVE
set -euo pipefail
source "$(dirname "$0")/sanitizer.sh"

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:halt_on_error=1
ASAN_OPTIONS+=:detect_stack_use_after_return=1:check_initialization_order=1
# Allocators are asked for more than there is, and have to say so.
ASAN_OPTIONS+=:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

cmake_options=("-DTAGFLOW_PREBUILT_DEVICES=$3" "-DTAGFLOW_NATIVE=$4")
sanitizer_pass asan "$1" "$2" 'graph|actors|fuzz' \
  'malformed|graphdef|validate|graph/tensor_test|tests/actors/' \
  graph_tests actors_tests fuzz_targets
