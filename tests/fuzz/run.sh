#!/usr/bin/env bash
# Fuzzes one target, or all of them in turn. New inputs go to
# build/fuzz/corpus/NAME; move those worth keeping to tests/fuzz/corpus/NAME.
# usage: tests/fuzz/run.sh [NAME|all] [SECONDS]      default: all 30
set -euo pipefail
cd "$(dirname "$0")/../.."
which=${1:-all} seconds=${2:-30}

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --target fuzz_targets
for source in tests/fuzz/*.cpp; do
  name=$(basename "$source" .cpp)
  if [ "$name" = replay_main ]; then continue; fi
  if [ "$which" != all ] && [ "$which" != "$name" ]; then continue; fi
  echo "== $name, $seconds s"
  found=build/fuzz/corpus/$name
  mkdir -p "$found"
  seeds=()
  if [ -d "tests/fuzz/corpus/$name" ]; then
    seeds=("tests/fuzz/corpus/$name")
  fi
  "build/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=2048 -artifact_prefix="$found-" "$found" \
    "${seeds[@]}"
done
