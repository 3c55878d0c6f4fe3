#!/usr/bin/env bash
# Builds and runs the kernel tests of this folder on the SIMT shim, and prints a table.
#
#   run.sh OUT_DIR [plain|asan|tsan|count|ucontext|all] [part of a file's name]
#
# The compiler is $CXX, else g++, else clang++; flags of the flavours are told in ../README.md.
# Exits with 1 if a test does not build or fails (one that does not catch a planted defect fails).

set -u
out=${1:?usage: run.sh OUT_DIR [FLAVOUR] [NAME]}
wanted=${2:-plain}
part=${3:-}
simt=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
crates=$(cd "$simt/../.." && pwd)

cxx=${CXX:-}
[ -n "$cxx" ] || cxx=$(command -v g++ || command -v clang++ || true)
if [ -z "$cxx" ] || ! command -v "$cxx" >/dev/null; then
    echo "skipped: no C++ compiler (${CXX:-g++, clang++}) on this machine"
    exit 0
fi

# Lines of reports are all that debug information is for: its first level compiles a third faster.
common="-std=c++17 -g1 -Wall -Wno-unknown-pragmas -ffp-contract=off -fno-omit-frame-pointer -fPIC -DEMB_HOST_SIM
    -I$simt -I$simt/tests -I$crates/emb-kernels/cuda -I$crates/emb-optim/cuda"

unloadable=-fno-gnu-unique
wrapped=
count=
if "$cxx" --version | grep -q clang; then
    unloadable=  # clang makes none
    wrapped=-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset  # its copies of structs
    # It leaves out a read that a write of the same address follows.
    count="-mllvm -tsan-instrument-read-before-write=1"
fi

# Sets the flags of kernels (with their tests), of the runtime and of the link.
flags() {
    link="-rdynamic"
    case $1 in
    plain) kernel="-O1" runtime="-O2" ;;
    ucontext) kernel="-O1 -DSIMT_UCONTEXT" runtime="-O2 -DSIMT_UCONTEXT" ;;
    asan)
        # Without optimisation no access is left out before the sanitizer sees it, and what it adds
        # compiles in half the time; tests run little longer.
        kernel="-O0 -fsanitize=address,undefined -fno-sanitize-recover=undefined"
        runtime="-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined"
        link="$link -fsanitize=address,undefined"
        ;;
    tsan)
        kernel="-O1 -fsanitize=thread -DSIMT_TSAN" runtime="-O2 -DSIMT_TSAN"
        link="$link -fsanitize=thread"
        ;;
    count)
        kernel="-O1 -fsanitize=thread $count -DSIMT_COUNT" runtime="-O2 -DSIMT_COUNT"
        link="$link $wrapped"
        ;;
    *)
        echo "no flavour is named $1"
        exit 2
        ;;
    esac
}

seconds() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

# Whether $1 is not there, or older than this script or a source that it was made of: $2 is the
# compiler's list of these.
stale() {
    [ -e "$1" ] && [ -e "$2" ] && [ "$1" -nt "${BASH_SOURCE[0]}" ] || return 0
    local source
    for source in $(sed -e 's/^[^:]*://' -e 's/\\$//' "$2"); do
        [ "$1" -nt "$source" ] || return 0
    done
    return 1
}

failures=0
run_flavour() {
    local flavour=$1 folder="$out/$1" source object name built start ran
    flags "$flavour"
    mkdir -p "$folder"
    local objects=()
    for source in "$simt"/*.cpp; do
        object="$folder/$(basename "$source" .cpp).o"
        if stale "$object" "${object%.o}.d"; then
            # shellcheck disable=SC2086
            "$cxx" $common $runtime -MMD -c "$source" -o "$object" || exit 1
        fi
        objects+=("$object")
    done
    for source in "$simt"/tests/loaded/*.cu; do
        object="$folder/$(basename "$source" .cu).so"
        if stale "$object" "$object.d"; then
            # Its own kernels first, also those of names the program has; and no symbol that would
            # keep it from being unloaded.
            # shellcheck disable=SC2086
            "$cxx" $common $kernel $unloadable -MMD -x c++ -c "$source" -o "$object.o" || exit 1
            # shellcheck disable=SC2086
            "$cxx" -shared -Wl,-Bsymbolic "$object.o" $link -o "$object" || exit 1
        fi
    done
    for source in "$simt"/tests/*.cpp; do
        name=$(basename "$source" .cpp)
        case $name in *"$part"*) ;; *) continue ;; esac
        start=$EPOCHREALTIME
        # The runtime may be younger than the test, so the last step is always taken.
        if stale "$folder/$name.test.o" "$folder/$name.test.d"; then
            # Compiled by itself: the count flavour does so for the thread sanitizer, and links none.
            # shellcheck disable=SC2086
            "$cxx" $common $kernel -MMD -c "$source" -o "$folder/$name.test.o" ||
                rm -f "$folder/$name.test.o"
        fi
        # shellcheck disable=SC2086
        if ! "$cxx" "$folder/$name.test.o" "${objects[@]}" $link -pthread -ldl -o "$folder/$name"; then
            row "$name" "$flavour" "$(seconds "$start")" - "does not build"
            failures=$((failures + 1))
            continue
        fi
        built=$(seconds "$start")
        start=$EPOCHREALTIME
        if SIMT_LOADED="$folder" ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0 \
            UBSAN_OPTIONS=print_stacktrace=1 "$folder/$name" >"$folder/$name.log" 2>&1; then
            ran=$(seconds "$start")
            row "$name" "$flavour" "$built" "$ran" "ok: $(tail -n 1 "$folder/$name.log")"
        else
            ran=$(seconds "$start")
            row "$name" "$flavour" "$built" "$ran" "FAILED"
            failures=$((failures + 1))
            sed 's/^/    /' "$folder/$name.log"
        fi
    done
}

row() { printf '%-28s %-9s %7s %7s  %s\n' "$@"; }

row test flavour build_s run_s result
if [ "$wanted" = all ]; then
    for flavour in plain asan tsan count ucontext; do run_flavour "$flavour"; done
else
    run_flavour "$wanted"
fi
[ "$failures" -eq 0 ]
