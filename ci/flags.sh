#!/usr/bin/env bash
# Every command and flag of `emb` that the docs show exists in the program's help.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

cargo build --quiet --release --package emb-dlrm
emb() { cargo run --quiet --release -- "$@"; }

failed=0
shown=$(git ls-files '*.md' | xargs grep -ohE 'cargo run --release -- [^`]+' | sort -u)
while read -r line; do
    read -ra words <<<"${line#*cargo run --release -- }"
    subcommand=()
    if [[ ${words[0]} != -* ]]; then subcommand=("${words[0]}"); fi
    help=$(emb "${subcommand[@]}" --help)
    for word in "${words[@]}"; do
        if [[ $word == --* ]] && ! grep -qE -- "(^|[ ,])${word%%=*}([] ,=<]|\$)" <<<"$help"; then
            echo "the docs show \`$line\`, but the help has no ${word%%=*}" >&2
            failed=1
        fi
    done
done <<<"$shown"
exit "$failed"
