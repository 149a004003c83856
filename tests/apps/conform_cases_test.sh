#!/usr/bin/env bash
# CTest case apps/conform_cases: what TensorFlow 2.21 did gives the recorded
# results whatever the passes, the hand-off and the window, and wherever nodes
# run: sessions of its own tests of control flow
# (conform_cases/control_flow.tar.xz: graphs, what was fed, what came out), and,
# in fewer configurations, random cases of single ops and small programs
# (random_ops.tar.xz; see tests/devices/record_random_ops.py).
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

for archive in control_flow random_ops; do
  mkdir "$work/$archive"
  (cd "$work/$archive" && cmake -E tar xf "$here/conform_cases/$archive.tar.xz") ||
    complain "the cases do not unpack" cmake -E tar
done
# replay ARCHIVE CASES OPTIONS...: all of them pass
replay() {
  local archive=$1 count=$2
  shift 2
  expect 0 "^$count passed, 0 failed, 0 skipped\$" '' \
    tagflow conform "$@" "$work/$archive"
}
for options in "" "--passes none" "--mailbox-only" "--workers 1 --window 1" \
  "--workers 2 --window 32" "--passes fold" "--passes identity" \
  "--passes cse" "--passes dead" "--passes hoist" "--passes fuse" \
  "--passes inplace" "--passes edges" "--through-wire" \
  "--devices cpu:1,stream:2 --scatter 3" \
  "--through-wire --devices cpu:2,stream:2 --scatter 8"; do
  # shellcheck disable=SC2086  # several words
  replay control_flow 274 $options
done
for seed in {1..20}; do
  replay control_flow 274 --devices cpu:2 --scatter "$seed"
  replay control_flow 274 --devices cpu:4 --scatter "$seed"
done
for options in "" "--passes none" "--mailbox-only" \
  "--devices cpu:1,stream:2 --scatter 3" "--through-wire"; do
  # shellcheck disable=SC2086  # several words
  replay random_ops 1702 $options
done
finish
