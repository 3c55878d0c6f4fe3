#!/usr/bin/env bash
# Everything a change must pass but the tests, which run apart.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

cargo xtask check --fast
