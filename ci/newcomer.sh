#!/usr/bin/env bash
# What a newcomer does first: the README's command as printed there, and once more, shorter, for its JSON.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

limit=120 # seconds; it takes 30 on two quiet cores
command='cargo run --release -- train --data synthetic --world 4 --replicas 2'
grep -qxF "$command" README.md || { echo "README.md does not show: $command" >&2; exit 1; }

heading "build"
cargo build --release --package emb-dlrm

heading "$command"
timeout "$limit" $command

heading "$command --steps 1000 --json"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout "$limit" $command --steps 1000 --json >"$out"
# The teacher's AUC is below 0.8, so more than half of the way from 0.5 to it is above 0.65.
cargo xtask assert-json "$out" 'teacher_auc>0.79' 'teacher_auc<0.80' 'eval.auc>0.65' 'eval.auc<0.80' \
    'eval.normalized_entropy<0.97' 'eval.rows=50000' 'loss>0'
