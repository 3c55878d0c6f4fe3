#!/usr/bin/env bash
# What a newcomer does first: the README's command as printed there, and once more for its JSON.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

limit=600 # seconds, build included
command='cargo run --release -- train --data synthetic'
grep -qxF "$command" README.md || { echo "README.md does not show: $command" >&2; exit 1; }

heading "$command"
timeout "$limit" $command

heading "$command --json"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout "$limit" $command --json >"$out"
# A model that learnt something: better than guessing the base rate, on the last line of JSON.
cargo xtask assert-json "$out" 'auc>0.55' 'auc<=1' 'normalized_entropy<1' 'loss>0'
