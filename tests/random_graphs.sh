#!/usr/bin/env bash
# Random graphs against the reference interpreter, three configurations of
# engine and passes each, on all processors. Reports each thousand.
# usage: tests/random_graphs.sh [COUNT [FIRST]]      default: 10000 10000
# Needs the Release build of tests/run.sh; TAGFLOW_TESTS names another one.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-10000} first=${2:-10000}
export tests=${TAGFLOW_TESTS:-build/release/tests/actors_tests}

range() {
  export TAGFLOW_FIRST_GRAPH=$1 TAGFLOW_GRAPHS=$2
  local log
  if log=$("$tests" -tc="random graphs of a range*" 2>&1); then
    echo "graphs $1 to $(($1 + $2 - 1)): $(grep assertions: <<<"$log")"
  else
    echo "graphs $1 to $(($1 + $2 - 1)) FAILED"
    echo "$log"
    return 1
  fi
}
export -f range

for ((at = first; at < first + count; at += 1000)); do
  left=$((first + count - at))
  echo "$at $((left < 1000 ? left : 1000))"
done | xargs -P "$(nproc)" -L 1 bash -c 'range "$@"' range
