// Planted races: missing barriers and fences, blocks that accumulate without atomics. The race
// checker names the kernel's line; where results are wrong too, they are so in every schedule.
#include "check.h"

constexpr int kThreads = 64;

// Each thread reads what a thread of another warp wrote.
template <bool kBarrier>
__device__ void mirror(int* out) {
    EMB_SHARED_ARRAY(int, seen, [kThreads]);
    const int i = static_cast<int>(threadIdx.x);
    seen[i] = i;
    if (kBarrier) __syncthreads();
    out[i] = seen[kThreads - 1 - i];  // other warps' words
}
extern "C" __global__ void mirror_with_barrier(int* out) { mirror<true>(out); }
extern "C" __global__ void mirror_without(int* out) { mirror<false>(out); }
SIMT_REGISTER(mirror_with_barrier)
SIMT_REGISTER(mirror_without)

// Each round another thread writes what all then read; the last barrier keeps the next round out.
template <bool kBarrier>
__device__ void rounds(int* out) {
    EMB_SHARED_ARRAY(int, message, [1]);
    const int i = static_cast<int>(threadIdx.x);
    int sum = 0;
    for (int round = 0; round < 6; ++round) {
        if (i == round * 37 % kThreads) message[0] = 1 << round;
        __syncthreads();
        sum += message[0];  // this round's
        if (kBarrier) __syncthreads();
    }
    out[i] = sum;
}
extern "C" __global__ void rounds_with_barrier(int* out) { rounds<true>(out); }
extern "C" __global__ void rounds_without(int* out) { rounds<false>(out); }
SIMT_REGISTER(rounds_with_barrier)
SIMT_REGISTER(rounds_without)

// As `mirror`, within each warp.
template <bool kBarrier>
__device__ void warp_mirror(int* out) {
    EMB_SHARED_ARRAY(int, seen, [kThreads]);
    const int i = static_cast<int>(threadIdx.x);
    seen[i] = i;
    if (kBarrier) __syncwarp();
    out[i] = seen[i ^ 31];  // other lanes' words
}
extern "C" __global__ void warp_mirror_with_barrier(int* out) { warp_mirror<true>(out); }
extern "C" __global__ void warp_mirror_without(int* out) { warp_mirror<false>(out); }
SIMT_REGISTER(warp_mirror_with_barrier)
SIMT_REGISTER(warp_mirror_without)

// A shuffle lets no thread run ahead, but orders no memory: a race that no schedule here shows.
extern "C" __global__ void warp_mirror_by_vote(int* out) {
    EMB_SHARED_ARRAY(int, seen, [kThreads]);
    const int i = static_cast<int>(threadIdx.x);
    seen[i] = i;
    __any_sync(0xffffffffu, 1);
    out[i] = seen[i ^ 31];
}
SIMT_REGISTER(warp_mirror_by_vote)

template <typename Kernel>
static void run_mirror(const char* name, Kernel kernel, int flip) {
    check::for_each_schedule([&] {
        check::Buffer<int> out(kThreads, -7);
        EXPECT_EQUAL(check::launch(name, kernel, 1, kThreads, 0, out), kSimtSuccess);
        std::vector<int> expected(kThreads);
        for (int i = 0; i < kThreads; ++i) expected[i] = flip ? i ^ flip : kThreads - 1 - i;
        EXPECT_ALL_EQUAL(out, expected);
    });
}
template <typename Kernel>
static void run_rounds(const char* name, Kernel kernel) {
    check::for_each_schedule([&] {
        check::Buffer<int> out(kThreads, -7);
        EXPECT_EQUAL(check::launch(name, kernel, 1, kThreads, 0, out), kSimtSuccess);
        EXPECT_ALL_EQUAL(out, std::vector<int>(kThreads, 63));
    });
}

TEST(barriers_make_a_block_agree) {
    run_mirror("mirror_with_barrier", &mirror_with_barrier, 0);
    run_rounds("rounds_with_barrier", &rounds_with_barrier);
    run_mirror("warp_mirror_with_barrier", &warp_mirror_with_barrier, 31);
}

// " differ" is what a wrong result says, here once for each of five schedules.
PLANT(a_read_before_the_barrier, {~check::kTsan, "(sequential): out"},
      {~check::kTsan, "(reverse): out"}, {~check::kTsan, "(random, seed 1): out"},
      {~check::kTsan, "(random, seed 3): out"}, {check::kTsan, "data race"},
      {check::kTsan, LINE_WITH("// other warps' words")}) {
    run_mirror("mirror_without", &mirror_without, 0);
}
PLANT(a_write_after_a_read_without_a_barrier, {~check::kTsan, "(sequential): out"},
      {~check::kTsan, "(reverse): out"}, {~check::kTsan, "(random, seed 1): out"},
      {~check::kTsan, "(random, seed 3): out"}, {check::kTsan, "data race"},
      {check::kTsan, LINE_WITH("// this round's")}) {
    run_rounds("rounds_without", &rounds_without);
}
PLANT(lanes_that_rely_on_running_together, {~check::kTsan, "(sequential): out"},
      {~check::kTsan, "(reverse): out"}, {~check::kTsan, "(random, seed 1): out"},
      {~check::kTsan, "(random, seed 3): out"}, {check::kTsan, "data race"},
      {check::kTsan, LINE_WITH("// other lanes' words")}) {
    run_mirror("warp_mirror_without", &warp_mirror_without, 31);
}
PLANT(a_vote_taken_for_a_memory_barrier, {check::kTsan, "data race"}) {
    run_mirror("warp_mirror_by_vote", &warp_mirror_by_vote, 31);
}

// Blocks add to one word. Without an atomic the sum is right by luck: blocks run one after another.
extern "C" __global__ void add_atomically(float* sum) {
    if (threadIdx.x == 0) atomicAdd(sum, 1.0f);
}
extern "C" __global__ void add_plainly(float* sum) {
    if (threadIdx.x == 0) *sum += 1.0f;
}
// The block's barrier does not make it better.
extern "C" __global__ void add_after_barrier(float* sum) {
    __syncthreads();
    if (threadIdx.x == 0) *sum += 1.0f;
    __syncthreads();
}
SIMT_REGISTER(add_atomically)
SIMT_REGISTER(add_plainly)
SIMT_REGISTER(add_after_barrier)

template <typename Kernel>
static void run_sum(const char* name, Kernel kernel, dim3 block) {
    check::Buffer<float> sum(1);
    for (int launch = 1; launch <= 3; ++launch) {  // launches of one stream are ordered
        EXPECT_EQUAL(check::launch(name, kernel, 8, block, 0, sum), kSimtSuccess);
        EXPECT_EQUAL(sum[0], 8.0f * static_cast<float>(launch));
        sum[0] += 0.0f;  // and the host may look in between
    }
}
TEST(atomics_of_many_blocks_are_no_race) { run_sum("add_atomically", &add_atomically, 64); }
PLANT(blocks_that_add_without_an_atomic, {check::kTsan, "data race"},
      {check::kTsan, "in add_plainly"}) {
    run_sum("add_plainly", &add_plainly, 64);
}
PLANT(blocks_of_one_thread_that_add_without_an_atomic, {check::kTsan, "data race"}) {
    run_sum("add_plainly", &add_plainly, 1);
}
PLANT(blocks_that_add_between_barriers, {check::kTsan, "data race"},
      {check::kTsan, "in add_after_barrier"}) {
    run_sum("add_after_barrier", &add_after_barrier, 64);
}

// The block that comes last adds up what all blocks left; fences order the parts and the ticket.
template <bool kPublish, bool kTake>
__device__ void last_block_sums(int* parts, unsigned* tickets, int* sum) {
    EMB_SHARED_ARRAY(int, last, [1]);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = static_cast<int>(blockIdx.x);
        if (kPublish) __threadfence();
        last[0] = atomicInc(tickets, gridDim.x - 1) == gridDim.x - 1;
        if (kTake) __threadfence();
    }
    __syncthreads();
    if (!last[0] || threadIdx.x != 33) return;
    int all = 0;
    for (unsigned block = 0; block < gridDim.x; ++block) all += parts[block];
    *sum = all;
}
extern "C" __global__ void tickets_with_fences(int* parts, unsigned* tickets, int* sum) {
    last_block_sums<true, true>(parts, tickets, sum);
}
extern "C" __global__ void tickets_unpublished(int* parts, unsigned* tickets, int* sum) {
    last_block_sums<false, true>(parts, tickets, sum);
}
extern "C" __global__ void tickets_untaken(int* parts, unsigned* tickets, int* sum) {
    last_block_sums<true, false>(parts, tickets, sum);
}
SIMT_REGISTER(tickets_with_fences)
SIMT_REGISTER(tickets_unpublished)
SIMT_REGISTER(tickets_untaken)

template <typename Kernel>
static void run_tickets(const char* name, Kernel kernel) {
    check::Buffer<unsigned> tickets(1);
    for (const char* threads : {"1", "2"}) {
        setenv("SIMT_THREADS", threads, 1);
        check::for_each_schedule([&] {
            check::Buffer<int> parts(9, -1);
            check::Buffer<int> sum(1);
            EXPECT_EQUAL(check::launch(name, kernel, 9, 64, 0, parts, tickets, sum), kSimtSuccess);
            EXPECT_EQUAL(sum[0], 36);
        });
    }
    unsetenv("SIMT_THREADS");
}
TEST(the_last_block_may_read_what_fences_and_a_ticket_order) {
    run_tickets("tickets_with_fences", &tickets_with_fences);
}
PLANT(a_ticket_without_the_fence_before, {check::kTsan, "data race"}) {
    run_tickets("tickets_unpublished", &tickets_unpublished);
}
PLANT(a_ticket_without_the_fence_after, {check::kTsan, "data race"}) {
    run_tickets("tickets_untaken", &tickets_untaken);
}

// Shared arrays of two blocks are two arrays, also after the addresses were all used once.
extern "C" __global__ void fill_own_shared(int* out) {
    EMB_SHARED_ARRAY(int, own, [4096]);
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) own[i] = static_cast<int>(i);
    __syncthreads();
    int sum = 0;
    for (unsigned i = threadIdx.x; i < 4096; i += 64 * blockDim.x) sum += own[i ^ 1];
    atomicAdd(out, sum);
}
SIMT_REGISTER(fill_own_shared)

TEST(many_blocks_with_shared_arrays_are_no_race) {
    check::Buffer<int> out(1);
    LAUNCH(fill_own_shared, 1500, 2, 0, out);  // 24 MB of arrays, more than are kept apart
    EXPECT(out[0] != 0);
}

CHECK_MAIN
