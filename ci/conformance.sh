#!/usr/bin/env bash
# Suites behind features, and the rendezvous of ranks in every order of its steps.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

heading "suites for implementations from outside"
EMB_FAULTS=1000 cargo test -p emb-comm -p emb-optim --features emb-comm/conformance,emb-optim/conformance

heading "the rendezvous, model-checked"
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p emb-comm --test loom --release

heading "more random plans than the default tests take"
EMB_CASES=80 cargo test --workspace --test sharded -- any_plan_equals every_plan_of_one in_any_format
