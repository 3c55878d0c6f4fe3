#!/usr/bin/env bash
# Suites behind features, and the rendezvous of ranks in every order of its steps.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

# The features of all that follows, so that each crate is compiled once more and no oftener.
heading "suites and examples for implementations from outside"
cargo test --workspace --all-features --test conformance
cargo test --workspace --all-features --doc

heading "unit tests of what is behind features"
cargo test --workspace --all-features --lib

heading "more faults and random plans than the default tests take"
EMB_FAULTS=1000 cargo test --workspace --test faults
EMB_CASES=80 cargo test --workspace --test sharded -- any_plan_equals every_plan_of_one in_any_format

# The release profile is for speed after minutes of compiling; this runs for seconds.
heading "the rendezvous, model-checked"
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=false \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo test -p emb-comm --test loom --release
