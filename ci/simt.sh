#!/usr/bin/env bash
# The CUDA kernels, the backend and the transports on the CPU, and the script for a machine with a
# GPU in rehearsal.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

heading "kernels, driver, conformance"
cargo xtask test-simt --required

heading "rehearsal of the script for a GPU"
cargo xtask test-gpu --rehearse --profile dev
