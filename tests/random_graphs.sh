#!/usr/bin/env bash
# Compares random graphs with the reference interpreter, in three
# configurations of engine, passes and devices each, on all processors. With
# --devices each graph also runs on those devices, with its nodes scattered by
# each of --scatters seeds. Reports each thousand.
#
# usage: tests/random_graphs.sh [--devices "SPEC..."] [--scatters N]
#                               [COUNT [FIRST]]      default: 10000 10000
# All of them with 20 seeds each on 2 and on 4 devices:
#   tests/random_graphs.sh --devices "cpu:2 cpu:4" --scatters 20
# Needs the Release build of tests/run.sh; TAGFLOW_TESTS names another one.
set -euo pipefail
export TAGFLOW_DEVICES="" TAGFLOW_SCATTERS=1
while [[ ${1:-} == --* ]]; do
  case $1 in
    --devices) TAGFLOW_DEVICES=${2:?"the devices, as \"cpu:2 cpu:4\""} ;;
    --scatters) TAGFLOW_SCATTERS=${2:?"how many seeds"} ;;
    *) echo "unknown option $1" >&2 && exit 2 ;;
  esac
  shift 2
done
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
