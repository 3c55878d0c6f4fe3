#!/usr/bin/env bash
# Runs every example of every crate.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

cargo build --quiet --workspace --all-features --examples
for path in crates/*/examples/*.rs crates/*/examples/*/main.rs; do
    [[ -e $path ]] || continue
    crate=$(cut -d/ -f2 <<<"$path")
    name=$(cut -d/ -f4 <<<"$path")
    heading "$crate: ${name%.rs}"
    timeout 300 "${CARGO_TARGET_DIR:-target}/debug/examples/${name%.rs}"
done
