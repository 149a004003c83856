#!/usr/bin/env bash
# Runs every test and check on a bare Debian 12: installs missing packages,
# builds Release, runs CTest. Ends with CTest's summary and its exit status.
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
cmake --preset release -DTAGFLOW_BUILD_TESTS=ON
cmake --build --preset release
if [ -z "$with_tensorflow" ]; then
  exec ctest --preset release --parallel "$(nproc)" "$@"
fi

ctest --preset release --parallel "$(nproc)" "$@"
environment=build/with_tensorflow
if [ ! -x "$environment/bin/python" ]; then
  python3 -m venv "$environment"
fi
"$environment/bin/pip" install --quiet tensorflow-cpu==2.21.0 \
  safetensors==0.8.0
for script in tests/with_tensorflow/*.py; do
  TAGFLOW_BIN=build/release/apps "$environment/bin/python" "$script"
done
