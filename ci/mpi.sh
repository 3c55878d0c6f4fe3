#!/usr/bin/env bash
# What needs MPI, and what a build says that finds none.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

heading "MPI, processes, the failure contract; also a message of more than 2^31 bytes"
EMB_MPI_LARGE=1 cargo xtask test-mpi --required

# Here MPI is there, so it is hidden: a PATH without its programs, no packages by pkg-config.
heading "U-42: a build with the feature mpi, without MPI"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/packages"
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do
    for program in "$folder"/*; do
        name=${program##*/}
        [[ -x $program && $name != mpi* && ! -e $scratch/bin/$name ]] || continue
        ln -s "$program" "$scratch/bin/$name"
    done
done
# Build scripts fail in the order that cargo chooses; going on, ours is among those that do.
if env -u MPICC -u MPI_PKG_CONFIG -u CRAY_MPICH_DIR PATH="$scratch/bin" PKG_CONFIG_PATH= \
    PKG_CONFIG_LIBDIR="$scratch/packages" CARGO_TARGET_DIR=target/without-mpi \
    cargo check --keep-going --package emb-comm --features mpi >"$scratch/said" 2>&1; then
    echo "a build with the feature mpi passes without MPI" >&2
    exit 1
fi
messages=$(grep '^error: emb-comm@' "$scratch/said") || { cat "$scratch/said"; exit 1; }
echo "$messages"
[[ $(wc -l <<<"$messages") == 1 ]] || { echo "not one message" >&2; exit 1; }
for text in MPI_PKG_CONFIG MPICC mpicc 'pkg-config mpich' 'pkg-config ompi' libopenmpi-dev; do
    grep -qF "$text" <<<"$messages" || { echo "the message does not say $text" >&2; exit 1; }
done
