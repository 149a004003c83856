#!/usr/bin/env bash
# Installs the Debian 12 packages that tagflow needs, as root or through sudo.
# Packages that are there already are left alone; if none is missing,
# nothing is asked of the network or of sudo.
# usage: apps/setup.sh [build|test]      default: build
set -euo pipefail

# To build and to run the applications.
build_packages=(
  ca-certificates
  ccache
  cmake
  dataset-fashion-mnist
  festlex-cmu
  fortunes
  g++
  graphviz
  libboost-dev
  libcaf-dev
  libcli11-dev
  libdnnl-dev
  libeigen3-dev
  libfarmhash-dev
  libfmt-dev
  libgif-dev
  libgrpc++-dev
  libicu-dev
  libjpeg62-turbo-dev
  libleveldb-dev
  libpng-dev
  libprotobuf-dev
  libre2-dev
  libsnappy-dev
  libspdlog-dev
  libssl-dev
  libwebp-dev
  libzip-dev
  ninja-build
  nlohmann-json3-dev
  protobuf-compiler
  protobuf-compiler-grpc
  zlib1g-dev
)
# On top of these, to test and to check.
test_packages=(
  clang-14
  clang-format-14
  curl
  doctest-dev
  git
  iproute2
  libclang-rt-14-dev
  librapidcheck-dev
  python3
  python3-dev
  python3-venv
)

case ${1:-build} in
  build) packages=("${build_packages[@]}") ;;
  test) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  *)
    sed -n '2,5p' "$0" >&2
    exit 2
    ;;
esac

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: neither root nor sudo; please install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi
as_root+=(DEBIAN_FRONTEND=noninteractive)

echo "setup: installing ${missing[*]}" >&2
# Another apt may be at work, as on a machine that has just started.
options=(-qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
"${as_root[@]}" apt-get "${options[@]}" update >&2
"${as_root[@]}" apt-get "${options[@]}" install --yes \
  --no-install-recommends "${missing[@]}" >&2
