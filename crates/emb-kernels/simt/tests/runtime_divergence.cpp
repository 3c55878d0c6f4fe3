// Planted divergence: threads of a block or lanes of a warp that do not meet where they must. What
// would hang or be undefined on a GPU is told with kernel, block, threads and lines.
#include "check.h"

extern "C" __global__ void shuffle_in_a_branch(unsigned mask, int* out) {
    int value = static_cast<int>(threadIdx.x);
    if (threadIdx.x % 2 == 1) value = __shfl_sync(mask, value, 31);
    out[threadIdx.x] = value;
}
SIMT_REGISTER(shuffle_in_a_branch)

static void run_branch(unsigned mask) {
    check::for_each_schedule([&] {
        check::Buffer<int> out(64);
        LAUNCH(shuffle_in_a_branch, 1, 64, 0, mask, out);
        for (int i = 0; i < 64; ++i) EXPECT_EQUAL(out[i], i % 2 ? i / 32 * 32 + 31 : i);
    });
}
TEST(a_shuffle_in_a_branch_with_the_mask_of_the_branch_is_right) { run_branch(0xaaaaaaaau); }
// On a GPU the other lanes return, and the full mask names lanes that nothing waits for: allowed.
TEST(lanes_that_returned_are_not_waited_for_by_a_shuffle) { run_branch(0xffffffffu); }

extern "C" __global__ void shuffle_while_others_wait(int* out) {
    int value = static_cast<int>(threadIdx.x);
    if (threadIdx.x % 2 == 1) value = __shfl_sync(0xffffffffu, value, 31);  // odd lanes
    __syncthreads();  // even lanes
    out[threadIdx.x] = value;
}
SIMT_REGISTER(shuffle_while_others_wait)
PLANT(a_full_mask_in_a_branch, {check::kEvery, "kernel shuffle_while_others_wait"},
      {check::kEvery, "deadlock, 0 of 64 threads"},
      {check::kEvery, "32 threads (some of 0 to 62) wait at __syncthreads"},
      {check::kEvery, LINE_WITH("// even lanes")},
      {check::kEvery, "32 threads (some of 1 to 63) wait at __shfl_sync(ffffffff)"},
      {check::kEvery, LINE_WITH("// odd lanes")}) {
    check::Buffer<int> out(64);
    LAUNCH(shuffle_while_others_wait, 1, 64, 0, out);
}

extern "C" __global__ void two_barriers(int split, int* out) {
    if (static_cast<int>(threadIdx.x) < split) {
        __syncthreads();  // below
        out[threadIdx.x] = 1;
    } else {
        __syncthreads();  // above
        out[threadIdx.x] = 2;
    }
}
SIMT_REGISTER(two_barriers)
TEST(a_branch_that_all_threads_take_may_have_a_barrier) {
    check::Buffer<int> out(64);
    LAUNCH(two_barriers, 1, 64, 0, 64, out);
    LAUNCH(two_barriers, 1, 64, 0, 0, out);
    for (int each : out) EXPECT_EQUAL(each, 2);
}
PLANT(barriers_on_both_sides_of_a_branch, {check::kEvery, "divergent barrier"},
      {check::kEvery, LINE_WITH("// below")}, {check::kEvery, LINE_WITH("// above")},
      {check::kEvery, "32 threads wait"}) {
    check::Buffer<int> out(64);
    LAUNCH(two_barriers, 1, 64, 0, 32, out);
}

extern "C" __global__ void two_warp_calls(int* out) {
    const int value = static_cast<int>(threadIdx.x);
    if (value < 16) {
        out[value] = __shfl_xor_sync(0xffffffffu, value, 16);  // low lanes
    } else {
        out[value] = __shfl_xor_sync(0xffffffffu, value, 16);  // high lanes
    }
}
SIMT_REGISTER(two_warp_calls)
PLANT(shuffles_on_both_sides_of_a_branch, {check::kEvery, "divergent warp"},
      {check::kEvery, LINE_WITH("// low lanes")}, {check::kEvery, LINE_WITH("// high lanes")}) {
    check::Buffer<int> out(32);
    LAUNCH(two_warp_calls, 1, 32, 0, out);
}

extern "C" __global__ void read_from(unsigned mask, int source, int lanes, int* out) {
    const int i = static_cast<int>(threadIdx.x);
    if (i >= lanes) return;
    out[i] = __shfl_sync(mask, i, source);
}
SIMT_REGISTER(read_from)
static void run_read(unsigned mask, int source, int lanes) {
    check::Buffer<int> out(32, -1);
    LAUNCH(read_from, 1, 32, 0, mask, source, lanes, out);
    for (int i = 0; i < lanes; ++i) EXPECT_EQUAL(out[i], source);
}
TEST(a_lane_of_the_mask_may_be_read) {
    run_read(0x0000ffffu, 3, 16);
    run_read(0xffffffffu, 3, 16);
}
PLANT(a_lane_that_is_not_in_its_own_mask, {check::kEvery, "is not in its own mask 0000ffff"}) {
    run_read(0x0000ffffu, 3, 17);
}
PLANT(a_shuffle_from_a_lane_that_is_not_in_the_mask,
      {check::kEvery, "reads lane 20, which is not in the mask 0000ffff"}) {
    run_read(0x0000ffffu, 20, 16);
}
PLANT(a_shuffle_from_a_lane_that_has_returned,
      {check::kEvery, "reads lane 20, which has returned, of the mask ffffffff"}) {
    run_read(0xffffffffu, 20, 16);
}

extern "C" __global__ void warp_waits_for_block(int* out) {
    const bool middle = threadIdx.x / 16 == 2;
    if (middle) __syncwarp();
    if (!middle) __syncthreads();
    out[threadIdx.x] = 1;
}
SIMT_REGISTER(warp_waits_for_block)
PLANT(half_a_warp_waits_for_the_block, {check::kEvery, "deadlock"},
      {check::kEvery, "48 threads (some of 0 to 63) wait at __syncthreads"},
      {check::kEvery, "16 threads (32 to 47) wait at __syncwarp(ffffffff)"}) {
    check::Buffer<int> out(64);
    LAUNCH(warp_waits_for_block, 1, 64, 0, out);
}

CHECK_MAIN
