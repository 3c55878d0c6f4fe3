#!/usr/bin/env bash
# Makes sure of what a build needs beside the Rust toolchain: a C compiler, for zstd; for the CUDA
# kernels a C++ compiler, and Python with venv, by which their own compiler comes; for the feature
# `mpi` Open MPI, and libclang, which reads its headers; for several hosts on one machine, `ip`.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

command -v cargo >/dev/null || { echo "no cargo: install a Rust toolchain, 1.95 or newer" >&2; exit 1; }
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v g++ >/dev/null || missing+=(g++)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
command -v mpirun >/dev/null || missing+=(openmpi-bin)
command -v mpicc >/dev/null || missing+=(libopenmpi-dev)
[[ -n $(compgen -G '/usr/lib/llvm-*/lib/libclang.so*'; compgen -G '/usr/lib*/libclang.so*') ]] || missing+=(libclang-dev)
command -v ip >/dev/null || missing+=(iproute2)
if ((${#missing[@]})); then
    apt-get update -qq
    apt-get install -y -qq "${missing[@]}"
fi
rustc --version
cc --version | head -n 1
g++ --version | head -n 1
python3 --version
mpirun --version | head -n 1
