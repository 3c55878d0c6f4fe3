#!/usr/bin/env bash
# Builds the libraries that stand in for CUDA's on a machine without a GPU.
#
#   build.sh OUT_DIR [plain|asan|tsan|count] [FOLDER]
#
# OUT_DIR/FOLDER (the flavour's name without) then holds one shared object with the driver, the SIMT runtime and the kernels of
# cuda/emb.cu, and links to it under every name that programs look for; put it in LD_LIBRARY_PATH.
# The last line printed is that folder. Kernels of $EMB_EXTRA_KERNELS (files, by spaces) are added,
# those of $EMB_KERNEL_FILES take the place of emb.cu. Folders of one flavour share what they compile.
# The compiler is $CXX, else g++, else clang++. What is newer than its sources is not built again.

set -eu
out=${1:?usage: build.sh OUT_DIR [FLAVOUR]}
flavour=${2:-plain}
driver=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
simt=$(dirname "$driver")
crates=$(cd "$simt/../.." && pwd)
cuda="$crates/emb-kernels/cuda"
optim="$crates/emb-optim/cuda"
comm="$crates/emb-comm/cuda"

cxx=${CXX:-}
[ -n "$cxx" ] || cxx=$(command -v g++ || command -v clang++ || true)
if [ -z "$cxx" ] || ! command -v "$cxx" >/dev/null; then
    echo "skipped: no C++ compiler (${CXX:-g++, clang++}) on this machine" >&2
    exit 3
fi

case $flavour in
plain) kernel="-O2" runtime="-O2" own="-O1" link="" later="" ;;
asan)
    later="-fsanitize=address,undefined -fno-sanitize-recover=undefined"
    kernel="-O1 $later" runtime="-O1 $later" own="-O1 $later" link="-fsanitize=address,undefined"
    ;;
tsan)
    later="-fsanitize=thread -DSIMT_TSAN"
    kernel="-O1 $later" runtime="-O2 -DSIMT_TSAN" own="-O1 $later" link="-fsanitize=thread"
    ;;
count)
    # Kernels compile for the thread sanitizer, whose calls the runtime counts; none is linked.
    later="-fsanitize=thread -DSIMT_COUNT"
    kernel="-O1 $later" runtime="-O2 -DSIMT_COUNT" own="-O1 -DSIMT_COUNT" link=""
    ;;
*)
    echo "no flavour is named $flavour" >&2
    exit 2
    ;;
esac

common="-std=c++17 -g1 -fPIC -Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off
    -fno-omit-frame-pointer -DEMB_HOST_SIM -I$simt -I$driver -I$cuda -I$optim"

folder="$out/${3:-$flavour}"
objects="$out/$flavour/objects"
mkdir -p "$folder" "$objects"
# Test programs that start together build once.
exec 9>"$objects/lock"
flock 9

# Whether $1 is older than a source: $2 itself or any header of the folders after it.
stale() {
    local target=$1 source=$2
    shift 2
    [ ! -e "$target" ] || [ "$source" -nt "$target" ] || [ "$driver/build.sh" -nt "$target" ] ||
        [ -n "$(find "$@" -maxdepth 1 -newer "$target" \
            \( -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print -quit 2>/dev/null)" ]
}

jobs="$folder/jobs"
: >"$jobs"
wanted=()
# A line of `jobs` is a command. Objects of several folders are kept apart by kind.
add() {
    local kind=$1 source=$2 flags=$3
    shift 3
    local object="$objects/$kind.$(basename "$source").o"
    wanted+=("$object")
    # Under a name of its own first: an interrupted build leaves no half object.
    if stale "$object" "$source" "$@"; then
        echo "$cxx" $common $flags -c "$source" -o "$object.new" "&& mv $object.new $object" \
            >>"$jobs"
    fi
}

for source in "$simt"/*.cpp; do add runtime "$source" "$runtime" "$simt"; done
for source in "$driver"/*.cpp; do
    flags=$own
    case $source in
    */nvrtc.cpp)
        flags="$own '-DSIMT_CXX=\"$cxx\"'"
        flags="$flags '-DSIMT_FLAGS=\"$later\"' '-DSIMT_LINK_FLAGS=\"$link\"'"
        ;;
    esac
    add driver "$source" "$flags" "$simt" "$driver"
done
for source in ${EMB_KERNEL_FILES-$cuda/emb.cu} ${EMB_EXTRA_KERNELS:-}; do
    [ -e "$source" ] || continue
    add kernel "$source" "$kernel -x c++" "$simt" "$cuda" "$optim" "$comm" "$(dirname "$source")"
done

xargs -r -d '\n' -P2 -n1 sh -c <"$jobs"

library="$folder/libsimt_driver.so"
listed="$folder/objects.list"
printf '%s\n' "${wanted[@]}" >"$listed.new"
if [ ! -e "$library" ] || ! cmp -s "$listed" "$listed.new" ||
    [ -n "$(find "${wanted[@]}" -newer "$library" -print -quit)" ]; then
    # shellcheck disable=SC2086
    "$cxx" -shared -Wl,-soname,libsimt_driver.so "${wanted[@]}" $link -pthread -ldl \
        -o "$library.new"
    mv "$library.new" "$library"
    mv "$listed.new" "$listed"
fi
rm -f "$jobs" "$listed.new"
for name in libcuda.so libcuda.so.1 libnccl.so libnccl.so.2 libcublasLt.so libcublasLt.so.13 \
    libnvrtc.so libnvrtc.so.13; do
    [ "$(readlink "$folder/$name")" = libsimt_driver.so ] || ln -sfn libsimt_driver.so "$folder/$name"
done
echo "$folder"
