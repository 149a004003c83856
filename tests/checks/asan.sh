#!/usr/bin/env bash
# CTest case check.asan: the short pass with AddressSanitizer and UBSan.
# usage: asan.sh CMAKE BUILD_DIR
set -euo pipefail
source "$(dirname "$0")/sanitizer.sh"

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:halt_on_error=1
ASAN_OPTIONS+=:detect_stack_use_after_return=1:check_initialization_order=1
# Allocators are asked for more than there is, and have to say so.
ASAN_OPTIONS+=:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

sanitizer_pass asan "$1" "$2" \
  'graph|devices|actors|fuzz' graph_tests devices_tests actors_tests \
  fuzz_targets
