#!/usr/bin/env bash
# CTest case check.format: every C++ file is as clang-format 14 writes it.
# usage: format.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/checks/files.sh

if ! command -v clang-format-14 >/dev/null; then
  echo "clang-format-14 is not installed: skipped"
  exit 77
fi
mode=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then
  mode=(-i)
fi
source_files '*.h' '*.cpp' | xargs -0 -r clang-format-14 "${mode[@]}"
