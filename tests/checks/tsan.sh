#!/usr/bin/env bash
# CTest case check.tsan: the short pass with ThreadSanitizer over code that
# several threads use: the engine, the device with threads of its own, state that
# steps share, and links. It is also the pass that compiles with clang, without
# precompiled headers, with warnings as errors.
# usage: tsan.sh CMAKE BUILD_DIR [...]   further arguments are for asan.sh
set -euo pipefail
source "$(dirname "$0")/sanitizer.sh"

if ! command -v clang++-14 >/dev/null; then
  echo "clang++-14 is not installed: skipped"
  exit 77
fi

sanitizer_pass tsan "$1" "$2" 'actors|devices|net' \
  'tests/actors/|tests/devices/stream/|tests/devices/state/|tests/net/' \
  actors_tests devices_tests net_tests
