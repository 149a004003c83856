#!/usr/bin/env bash
# Runs the tests and checks of a change on a bare Debian 12: installs missing
# packages, builds Release, runs CTest. Ends with CTest's summary and its exit status.
# With --with-tensorflow, then runs tests/with_tensorflow/*.py in a virtual
# environment, into which it installs TensorFlow from the Internet.
# usage: tests/run.sh [--with-tensorflow] [ARGUMENTS OF ctest]
#        for example: -L smoke
set -euo pipefail
cd "$(dirname "$0")/.."

with_tensorflow=
if [ "${1:-}" = --with-tensorflow ]; then
  with_tensorflow=1
  shift
fi

bash apps/setup.sh test

# Machines have faster and slower hours: the time of one fixed unit, which is
# no part of tagflow, makes times of different runs comparable.
start=${EPOCHREALTIME/[.,]/}
g++ -O2 -std=c++20 -x c++ -c -o /dev/null - <<'EOF'
#include <regex>
bool matches(const char* s) { return std::regex_match(s, std::regex(s)); }
EOF
phase=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
echo "phase: a fixed unit compiles in $((phase / 10)).$((phase % 10)) s"

SECONDS=0
cmake --preset release -DTAGFLOW_BUILD_TESTS=ON
cmake --build --preset release
echo "built in $SECONDS s"
if [ -z "$with_tensorflow" ]; then
  exec ctest --preset release --parallel "$(nproc)" "$@"
fi

ctest --preset release --parallel "$(nproc)" "$@"
environment=build/with_tensorflow
if [ ! -x "$environment/bin/python" ]; then
  python3 -m venv "$environment"
fi
"$environment/bin/pip" install --quiet tensorflow-cpu==2.21.0 \
  tensorboard==2.21.0 safetensors==0.8.0
for script in tests/with_tensorflow/*.py; do
  TAGFLOW_BIN=build/release/apps "$environment/bin/python" "$script"
done
