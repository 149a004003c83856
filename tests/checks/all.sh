#!/usr/bin/env bash
# All that is checked now and then, but not with each change: tests/run.sh with
# TensorFlow, more random cases, every test under AddressSanitizer, the engine
# under ThreadSanitizer, and the libraries as shared ones. Takes hours. Stops at
# the first failure; with names of steps, runs only these.
# usage: tests/checks/all.sh [run|random|asan|tsan|shared]...
set -euo pipefail
cd "$(dirname "$0")/../.."
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(run random asan tsan shared)
cmake=$(command -v cmake)

run() { bash tests/run.sh --with-tensorflow; }

random() {
  bash tests/random_graphs.sh 10000 0
  bash tests/random_graphs.sh --devices "cpu:2 cpu:4" 1000 20000
  (
    cd build/release/tests
    TAGFLOW_RANDOM_GRADIENTS="1000 1" ./autodiff_tests \
      --source-file='*random_programs_test.cpp'
    TAGFLOW_THOROUGH=10 ./actors_tests \
      --source-file='*groups_test.cpp,*random_lists_test.cpp,*devices_test.cpp'
  )
  build/release/apps/chaos --schedules 300
}

asan() {
  cmake --preset asan -DTAGFLOW_BUILD_TESTS=ON
  cmake --build --preset asan
  (
    source tests/checks/sanitizer.sh
    without_aslr ctest --preset asan --parallel "$(nproc)"
  )
}

tsan() { bash tests/checks/tsan.sh "$cmake" "$PWD/build/checks/tsan"; }

shared() {
  bash tests/checks/shared.sh "$cmake" "$PWD/build/checks" "$(command -v c++)"
}

for step in "${steps[@]}"; do
  case $step in
    run | random | asan | tsan | shared) "$step" ;;
    *) echo "unknown step $step" >&2 && exit 2 ;;
  esac
done
