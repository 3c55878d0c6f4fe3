#!/usr/bin/env bash
# Builds the libraries with the tests' kernels, and the tests of this folder, and runs them.
#
#   run.sh OUT_DIR [plain|asan|tsan|count|all] [part of a file's name]
#
# Exits with 1 if a test does not build or fails.

set -u
out=${1:?usage: run.sh OUT_DIR [FLAVOUR] [NAME]}
wanted=${2:-plain}
part=${3:-}
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
driver=$(dirname "$tests")
simt=$(dirname "$driver")
cxx=${CXX:-}
[ -n "$cxx" ] || cxx=$(command -v g++ || command -v clang++ || true)

seconds() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

failures=0
run_flavour() {
    local flavour=$1 folder source name program start built sanitize=""
    EMB_KERNEL_FILES="$tests/kernels.cu" "$driver/build.sh" "$out" "$flavour" \
        "$flavour-tests" >"$out/$flavour.log" 2>&1
    case $? in
    0) folder=$(tail -n 1 "$out/$flavour.log") ;;
    3) cat "$out/$flavour.log" && return ;;
    *) cat "$out/$flavour.log" && failures=$((failures + 1)) && return ;;
    esac
    case $flavour in
    asan) sanitize="-fsanitize=address,undefined" ;;
    tsan) sanitize="-fsanitize=thread" ;;
    esac
    for source in "$tests"/*.cpp; do
        name=$(basename "$source" .cpp)
        case $name in *"$part"*) ;; *) continue ;; esac
        program="$folder/test_$name"
        start=$EPOCHREALTIME
        if [ ! -e "$program" ] ||
            [ -n "$(find "$source" "$tests"/*.h -newer "$program" -print -quit)" ]; then
            # shellcheck disable=SC2086
            if ! "$cxx" -std=c++17 -g -O1 -Wall -Wextra $sanitize "$source" -o "$program" \
                "$folder/libsimt_driver.so" -Wl,-rpath,"$folder" -pthread; then
                failures=$((failures + 1))
                continue
            fi
        fi
        built=$(seconds "$start")
        start=$EPOCHREALTIME
        if SIMT_INCLUDE="$simt:$driver/../../cuda" ASAN_OPTIONS=detect_leaks=0 \
            TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0:die_after_fork=0 \
            "$program" >"$program.log" 2>&1; then
            row "$name" "$flavour" "$built" "$(seconds "$start")" \
                "ok: $(grep -c '^ok' "$program.log") claims"
        else
            row "$name" "$flavour" "$built" "$(seconds "$start")" FAILED
            failures=$((failures + 1))
            sed 's/^/    /' "$program.log"
        fi
    done
}

row() { printf '%-16s %-8s %7s %7s  %s\n' "$@"; }

mkdir -p "$out"
row test flavour build_s run_s result
if [ "$wanted" = all ]; then
    for flavour in plain asan tsan count; do run_flavour "$flavour"; done
else
    run_flavour "$wanted"
fi
[ "$failures" -eq 0 ]
