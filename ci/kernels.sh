#!/usr/bin/env bash
# The fat binary of the CUDA kernels, from a clean machine: every architecture, no spills, the same
# bytes twice, in time.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

limit=120 # seconds, with the download of the compiler
cargo build --quiet --package xtask
timeout "$limit" cargo xtask kernels --check-reproducible
