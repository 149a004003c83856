#!/usr/bin/env bash
# CTest case check.consumer: what `cmake --install` leaves is enough for
# projects that know nothing of this tree, and is what users are promised: the
# public headers and the documents. tests/consumer has those projects: every
# header, the first loop of the README, ops and kernels of one's own, a caller
# that uses OpenMP, and, where the libraries are position-independent, a
# plug-in.
# usage: consumer.sh CMAKE BUILD_DIR CXX POSITION_INDEPENDENT
set -euo pipefail
cmake=$1 build=$2 cxx=$3 position_independent=$4
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/first" >/dev/null
# Nothing in it may depend on where it was installed.
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
for document in README EMBEDDING ARCHITECTURE; do
  cmp "$top/$document.md" "$prefix/share/doc/tagflow/$document.md"
done

# --- The projects ------------------------------------------------------------
# project DIRECTORY COMMAND...: builds tests/consumer/DIRECTORY, and runs what
# the build made.
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

# The README's project, with the example that it shows.
cp "$top/apps/examples/first_loop.cpp" "$scratch/consumer/first/"

project headers ./headers
project first ./first_loop
project . ./consumer
[ "$("$scratch/build/parse" 1.5)" = 3 ] || {
  echo "parse 1.5 does not print 3"
  exit 1
}
project openmp ./consumer_openmp
if [ "$position_independent" = ON ]; then
  project plugin ./host ./libplugin.so
fi
# An installed program finds its libraries.
if [ -x "$prefix/bin/tagflow" ]; then
  "$prefix/bin/tagflow" --version >/dev/null
fi
