#!/usr/bin/env bash
# Builds a wheel of the Python package into python/dist/, and installs it, with
# what its tests need, into the virtual environment build/python_env. Packages
# come from PyPI the first time; later runs need no network. PYTHON names
# another interpreter than python3, TAGFLOW_BUILD another build folder of the
# engine than build/release.
#
# The wheel is for processors like that of this machine. With --portable it is
# for all of x86-64: the engine is built for them first, in build/portable.
#
# Ends with 77 if what it needs is neither there nor to be had.
# usage: python/build.sh [--portable]
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --portable ]; then
  TAGFLOW_BUILD=build/portable
  cmake --preset release -B "$TAGFLOW_BUILD" -DTAGFLOW_NATIVE=OFF \
    -DTAGFLOW_BUILD_TESTS=OFF -DTAGFLOW_BUILD_APPS=OFF
elif [ $# -gt 0 ]; then
  echo "usage: python/build.sh [--portable]" >&2
  exit 2
fi

environment=build/python_env
python=${PYTHON:-python3}
engine=$(realpath -m "${TAGFLOW_BUILD:-build/release}")
# To build, and to test.
packages=("scikit-build-core>=0.10" "nanobind>=2.4" "numpy>=2.0"
  ml_dtypes pytest)
modules="scikit_build_core, nanobind, numpy, ml_dtypes, pytest"

# The stable interface, which CPython has from 3.12 on, needs a newer CMake than
# Debian's.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
  packages+=("cmake>=3.26")
  modules+=", cmake"
fi

skip() {
  echo "python/build.sh: $1" >&2
  exit 77
}

header=$("$python" -c 'import sysconfig
print(sysconfig.get_paths()["include"] + "/Python.h")') ||
  skip "there is no $python"
[ -f "$header" ] || skip "$header is missing: apt install python3-dev"

if [ ! -x "$environment/bin/python" ]; then
  "$python" -m venv "$environment" ||
    skip "no virtual environment can be made: apt install python3-venv"
fi
if ! "$environment/bin/python" -c "import $modules" 2>/dev/null; then
  "$environment/bin/pip" install --quiet --disable-pip-version-check \
    "${packages[@]}" ||
    skip "PyPI has not given ${packages[*]}: is there a network?"
fi

rm -rf python/dist
PATH="$PWD/$environment/bin:$PATH" "$environment/bin/pip" wheel --quiet \
  --disable-pip-version-check --no-build-isolation --no-deps \
  --config-settings="cmake.define.TAGFLOW_ENGINE_BUILD=$engine" \
  --wheel-dir python/dist ./python
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps \
  --force-reinstall python/dist/tagflow-*.whl
ls python/dist/tagflow-*.whl
