#!/usr/bin/env bash
# CTest case apps/conform_cases: sessions of TensorFlow 2.21's own tests of
# control flow, recorded (conform_cases/control_flow.tar.xz: graphs, what was
# fed, what came out), give the recorded results whatever the passes, the
# hand-off and the window, and wherever their nodes run.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

(cd "$work" && cmake -E tar xf "$here/conform_cases/control_flow.tar.xz") ||
  complain "the cases do not unpack" cmake -E tar
replay() {
  expect 0 '^274 passed, 0 failed, 0 skipped$' '' \
    tagflow conform "$@" "$work"/*/
}
for options in "" "--passes none" "--mailbox-only" "--workers 1 --window 1" \
  "--workers 2 --window 32" "--passes fold" "--passes identity" \
  "--passes cse" "--passes dead" "--passes hoist" "--passes fuse" \
  "--passes inplace" "--passes edges" "--devices cpu:1,stream:2 --scatter 3"; do
  # shellcheck disable=SC2086  # several words
  replay $options
done
for seed in {1..20}; do
  replay --devices cpu:2 --scatter "$seed"
  replay --devices cpu:4 --scatter "$seed"
done
finish
