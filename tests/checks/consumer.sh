#!/usr/bin/env bash
# CTest case check.consumer: the files that `cmake --install` writes are enough
# for projects outside of this tree, and are exactly the public headers and the
# documents. tests/consumer has those projects: every header, the first loop of
# the README, ops and kernels of a user, linked and in a library that is loaded,
# a caller that uses OpenMP, and a plug-in.
# usage: consumer.sh CMAKE BUILD_DIR CXX
set -euo pipefail
cmake=$1 build=$2 cxx=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/first" >/dev/null
# No file in it may depend on the folder of the installation.
prefix=$scratch/prefix
mv "$scratch/first" "$prefix"

# --- The headers, and nothing else -------------------------------------------
listed=$(sed -E '/^(#|$)/d; s/ detail$//' "$top/cmake/public_headers.txt" |
  LC_ALL=C sort)
installed=$(cd "$prefix/include/tagflow" && find . -type f -printf '%P\n' |
  LC_ALL=C sort)
diff <(echo "$listed") <(echo "$installed") || {
  echo "installed headers (right) are not those of cmake/public_headers.txt"
  exit 1
}

# --- The documents -----------------------------------------------------------
for document in README.md ARCHITECTURE.md; do
  cmp "$top/$document" "$prefix/share/doc/tagflow/$document"
done
diff -r "$top/docs" "$prefix/share/doc/tagflow/docs"

# --- The projects ------------------------------------------------------------
# What they compile to is found again from any folder, as in the build.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$scratch CCACHE_NOHASHDIR=1
fi

# project DIRECTORY COMMAND...: builds tests/consumer/DIRECTORY, and runs the
# command in the build.
project() {
  local name=$1
  shift
  "$cmake" -S "$scratch/consumer/$name" -B "$scratch/build/$name" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_PREFIX_PATH="$prefix"
  "$cmake" --build "$scratch/build/$name"
  (cd "$scratch/build/$name" && "$@")
}

# Out of the tree, so that no header of it can be found by accident.
cp -r "$top/tests/consumer" "$scratch/consumer"
{
  sed -nE '/^#|^$| detail$/!s/.*/#include "&"/p' "$top/cmake/public_headers.txt"
  echo 'int main() { return 0; }'
} >"$scratch/consumer/headers/every_header.cpp"

# The project of docs/embedding.md, with the example of README.md.
cp "$top/apps/examples/first_loop.cpp" "$scratch/consumer/first/"

project headers ./headers
project first ./first_loop
project . ./consumer
[ "$("$scratch/build/parse" 1.5)" = 3 ] || {
  echo "parse 1.5 does not print 3"
  exit 1
}
project openmp ./consumer_openmp
project plugin ./host ./libplugin.so

# --- Op libraries ------------------------------------------------------------
# expect CODE TEXT COMMAND...: the exit status, and a text that a line of the
# output contains.
expect() {
  local code=$1 text=$2 said actual=0
  shift 2
  said=$("$@" 2>&1) || actual=$?
  if [ "$actual" != "$code" ] || ! grep -qF -- "$text" <<<"$said"; then
    printf 'exit status %s in place of %s, or not "%s": %s\n%s\n' \
      "$actual" "$code" "$text" "$*" "$said"
    exit 1
  fi
}

value='y = 17, dy/dx = 14'
project op_library ./host 2 ./libown_ops.so
project refused true
own=$scratch/build/op_library/libown_ops.so
host=$scratch/build/op_library/host
refused=$scratch/build/refused
expect 0 "$value" "$host" 2 "$own"
expect 1 'unknown op "ParseNumber"' "$host" 2
# A file is loaded once, by any path.
ln -s "$own" "$scratch/link.so"
expect 0 "$value" "$host" 2 "$own" "$own" "$scratch/link.so"
cp "$own" "$scratch/copy.so"
expect 1 'AlreadyExists: [op library] ' "$host" 2 "$own" "$scratch/copy.so"
expect 1 'NotFound: [op library] ' "$host" 2 "$scratch/no_such.so"
expect 1 'InvalidArgument: [op library] ' "$host" 2 "$0"
expect 1 'it lacks TAGFLOW_OP_LIBRARY' "$host" 2 "$refused/libno_entry.so"
expect 1 'op MatMul is registered already; ops that were added before stay: '\
'OnlyHere' "$host" 2 "$refused/libduplicate.so"
expect 1 'op Crooked: malformed "x float": ":" is missing' "$host" 2 \
  "$refused/libmalformed.so"
expect 1 'Internal: [op library] ' "$host" 2 "$refused/libthrows.so"
expect 1 'no ops today' "$host" 2 "$refused/libthrows.so"
expect 1 'it was built for tagflow 0.0' "$host" 2 \
  "$refused/libother_VERSION.so"
expect 1 'another standard library' "$host" 2 \
  "$refused/libother_STANDARD_LIBRARY.so"
expect 1 'a tagflow of its own' "$host" 2 "$refused/libother_REGISTRY.so"

# --- The installed command ---------------------------------------------------
# It finds its libraries, and has all symbols that an op library needs.
if [ -x "$prefix/bin/tagflow" ]; then
  tagflow=$prefix/bin/tagflow
  graph=$scratch/consumer/op_library/graph.pbtxt
  gradient=$scratch/gradient.pb
  "$tagflow" --version >/dev/null
  expect 0 'ParseNumber(text: string)' \
    "$tagflow" ops ParseNumber --op-library "$own"
  expect 1 'unknown op' "$tagflow" run "$graph" --feed 'text="2"' --fetch y
  expect 0 'y = double[] 17.0' "$tagflow" run "$graph" \
    --op-library "$own" --feed 'text="2"' --fetch y
  expect 1 'node "y" has the op Polynomial, which the list of denied' \
    "$tagflow" run "$graph" --op-library "$own" --feed 'text="2"' --fetch y \
    --deny-ops Polynomial
  expect 0 'grad_0:0' "$tagflow" gradients "$graph" --op-library "$own" \
    --y y --x x --out "$gradient"
  expect 0 'grad_0 = double[] 14.0' "$tagflow" run "$gradient" \
    --op-library "$own" --feed 'text="2"' --fetch grad_0
  expect 1 'it was built for tagflow 0.0' "$tagflow" ops \
    --op-library "$refused/libother_VERSION.so"
fi
