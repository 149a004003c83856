# Functions for asan.sh and tsan.sh, which source this file.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# without_aslr COMMAND...
# These old sanitizers fail to map their shadow on kernels that randomise more
# address bits than they expect. Containers may forbid the system call that
# turns randomisation off; then the command runs with it.
without_aslr() {
  if setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    setarch "$(uname -m)" --addr-no-randomize "$@"
  else
    "$@"
  fi
}

# sanitizer_pass PRESET CMAKE BUILD_DIR LABELS FILTER TARGET...
# Builds the targets that exist, with the tests whose sources match FILTER, and
# runs the smoke tests under LABELS. Configures with "${cmake_options[@]}" too.
cmake_options=()
sanitizer_pass() {
  local preset=$1 cmake=$2 build=$3 labels=$4 filter=$5
  shift 5
  cd "$top"
  "$cmake" --preset "$preset" -B "$build" -DTAGFLOW_BUILD_APPS=OFF \
    -DTAGFLOW_TEST_FILTER="$filter" "${cmake_options[@]}"

  local known target targets=()
  known=$("$cmake" --build "$build" --target help)
  for target in "$@"; do
    if grep -qE "^$target: phony" <<<"$known"; then
      targets+=("$target")
    fi
  done
  if [ ${#targets[@]} -eq 0 ]; then
    echo "nothing to build yet"
    return 0
  fi
  "$cmake" --build "$build" --parallel "$(nproc)" --target "${targets[@]}"

  without_aslr "$(dirname "$cmake")/ctest" --test-dir "$build" \
    --parallel "$(nproc)" --output-on-failure --no-tests=error \
    --label-regex "^($labels)\$" --label-exclude '^slow$'
}
