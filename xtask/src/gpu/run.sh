#!/usr/bin/env bash
# Tests and measures the CUDA side of emb on this machine: needs a driver, no toolkit, no Rust, no
# network. Python with torch is measured too, if it is here; compute-sanitizer is used, if it is.
#
#   ./run.sh          results go to ./results: results.json, table.txt, and a log of every part
#
# EMB_LIMIT     seconds for everything (350); a part that no longer fits has failed
# EMB_TINY=1    the smallest sizes that run everything, and one test of every program: for a machine
#               whose times mean nothing
set -uo pipefail
cd "$(dirname "$0")" || exit 2
limit=${EMB_LIMIT:-350}
tiny=${EMB_TINY:+--tiny}
out=results
rm -rf "$out" && mkdir -p "$out" || exit 2
export EMB_KERNELS=${EMB_KERNELS:-$PWD/emb.fatbin} RUST_BACKTRACE=1 RUST_TEST_NOCAPTURE=1
if [[ -d data ]]; then export EMB_DATA=$PWD/data; fi

# Libraries of CUDA where installers and wheels put them; the machine's own folders come first.
site=$(python3 -c 'import site; print("\n".join(site.getsitepackages()))' 2>/dev/null)
for folder in /usr/local/cuda/lib64 $(printf '%s/nvidia/*/lib ' $site); do
    if [[ -d $folder ]]; then LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; fi
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}

# Seconds that a part leaves for those after it.
reserve=0
names=() results=() seconds=() details=() failed=0

# part NAME LIMIT COMMAND...: runs it, and keeps how it ended and what it said of itself.
part() {
    local name=$1 most=$2 log="$out/${1// /-}.log" left=$((limit - reserve - SECONDS)) start=$EPOCHREALTIME
    local result detail code
    shift 2
    if [[ -n $tiny ]]; then most=$((5 * most)); fi
    if ((left < most)); then most=$left; fi
    if ((most < 5)); then
        row "$name" FAILED 0 "no time left of $limit s"
        return
    fi
    timeout --kill-after=5 "$most" "$@" >"$log" 2>&1
    code=$?
    detail=$(passed "$log")
    if ((code == 124 || code == 137)); then
        result=FAILED detail="not done in $most s"
    elif ((code != 0)); then
        result=FAILED detail="exit status $code, see $log"
        tail -n 40 "$log" >&2
    elif skip=$(grep -m 1 -o 'skipped: .*' "$log"); then
        result=skipped detail="${detail:+$detail, but }${skip#skipped: }"
    else
        result=ok
    fi
    row "$name" "$result" "$(elapsed "$start")" "$detail"
}

row() {
    names+=("$1") results+=("$2") seconds+=("$3") details+=("$4")
    printf '%-46s %-8s %7s s  %s\n' "$1" "$2" "$3" "$4"
    if [[ $2 == FAILED ]]; then failed=$((failed + 1)); fi
}

elapsed() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'; }

# How many tests a log says have passed.
passed() {
    sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$1" |
        awk '{ sum += $1 } END { if (NR) print sum " tests" }'
}

quoted() { printf '"%s"' "$(printf %s "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

device=$(./bench --describe 2>&1) || { echo "no device: $device" >&2; exit 1; }
echo "$device"
gpus=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit --format=csv 2>/dev/null | tee "$out/smi.txt"

reserve=160
# Against the CPU backend and between ranks: with one GPU the ranks share it.
for test in tests/*; do
    # Tests of the program `emb` want it where it was built, and a machine without a driver.
    chosen=(--skip driver::)
    if [[ -n $tiny ]]; then chosen=(--exact "$("$test" --list 2>/dev/null | sed -n 's/: test$//p;' | head -n 1)"); fi
    part "conformance ${test#tests/}" 120 "$test" "${chosen[@]}"
done

reserve=100
if command -v compute-sanitizer >/dev/null && [[ -z $tiny ]]; then
    for tool in memcheck racecheck; do
        part "compute-sanitizer $tool" 45 compute-sanitizer --tool "$tool" --error-exitcode 9 \
            tests/emb-kernels-cuda cuda_has_the_bits_of_the_cpu
    done
else
    row compute-sanitizer skipped 0 "not on this machine"
fi

reserve=50
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    read -r rows dim batch ids < <(./bench --step-shape $tiny)
    part "pytorch bag" 60 python3 torch_bag.py --rows "$rows" --dim "$dim" --batch "$batch" \
        --ids "$ids" --out "$out/torch.json"
else
    row "pytorch bag" skipped 0 "no python3 with torch and a GPU"
fi

reserve=0
part bench 90 ./bench $tiny --json "$out/bench.json" --torch "$out/torch.json"
cat "$out/bench.log"

{
    printf '{"device": %s, "gpus": %d, "seconds": %d, "parts": [' "$(quoted "$device")" "$gpus" "$SECONDS"
    for i in "${!names[@]}"; do
        if ((i)); then printf ','; fi
        printf '\n  {"name": %s, "result": "%s", "seconds": %s, "detail": %s}' \
            "$(quoted "${names[i]}")" "${results[i]}" "${seconds[i]}" "$(quoted "${details[i]}")"
    done
    printf '\n], "bench": '
    cat "$out/bench.json" 2>/dev/null || echo null
    printf '}\n'
} >"$out/results.json"
{
    echo "$device"
    for i in "${!names[@]}"; do
        printf '%-46s %-8s %7s s  %s\n' "${names[i]}" "${results[i]}" "${seconds[i]}" "${details[i]}"
    done
    cat "$out/bench.log"
} >"$out/table.txt"
echo "$SECONDS s; $PWD/$out/results.json, $PWD/$out/table.txt"
exit $((failed > 0))
