#!/usr/bin/env bash
# Installs what Holdfast builds with, from Debian 12's own packages. Needs root or sudo; does nothing
# where everything is there. `./setup.sh --list` prints the packages.
set -euo pipefail

packages=(
  # build
  git g++ cmake ninja-build pkg-config
  # libraries
  libsimgrid-dev libboost-graph-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev
  libexpected-dev libxxhash-dev libprotobuf-dev protobuf-compiler
  # tests, benchmarks and checks
  libgtest-dev libgmock-dev libbenchmark-dev python3 python3-jsonschema
  clang clang-format clang-tidy libclang-rt-14-dev
)

if [[ "${1:-}" == "--list" ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v apt-get > /dev/null; then
  echo "setup.sh: this is not a Debian system; install the packages of './setup.sh --list' by its own means" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2> /dev/null | grep -q '^install ok installed$' ||
    missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup.sh: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo > /dev/null; then
    echo "setup.sh: needs root to install: ${missing[*]}; run it as root" >&2
    exit 2
  fi
  as_root=(sudo)
fi
echo "setup.sh: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
