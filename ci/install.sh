#!/usr/bin/env bash
# Makes sure of what a build needs beside the Rust toolchain: a C compiler, for zstd.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

command -v cargo >/dev/null || { echo "no cargo: install a Rust toolchain, 1.95 or newer" >&2; exit 1; }
if ! command -v cc >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq gcc libc6-dev
fi
rustc --version
cc --version | head -n 1
