// Stable radix sort of (key, tag) pairs: 8 bits a pass, three launches a pass, no block waits for
// another within a launch. A pass moves 8 bytes a pair to count, then 12 in and 12 out; the counts
// are 1 KiB for each tile of 4,096 pairs, read and written twice.
//
// The host runs the three kernels for each 8 bits that keys can have, swapping source and target.
#include "scan.cuh"

namespace emb {

constexpr unsigned kSortThreads = 256;
constexpr unsigned kSortWarps = kSortThreads / kWarp;
constexpr unsigned kSortRounds = 16;                                 // pairs of a lane
constexpr unsigned kWarpPairs = kWarp * kSortRounds;                 // consecutive, so ranks ascend
constexpr unsigned kSortTile = kSortThreads * kSortRounds;           // 4,096, as in sort.rs
constexpr unsigned kDigits = 256;

// Counts one pair in its warp's counters; returns how many pairs of its digit came before in the
// warp. The lane that comes last among equals stores the sum, so no two lanes write one counter.
__device__ __forceinline__ uint32_t count_in_warp(uint32_t* counters, unsigned digit, bool valid) {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned lanes = same_digit(digit, valid);
    const unsigned below = __popc(lanes & ((1u << lane) - 1));
    const uint32_t before = valid ? counters[digit] : 0;
    __syncwarp();
    if (valid && (lanes >> lane) == 1) {
        counters[digit] = before + below + 1;
    }
    __syncwarp();
    return before + below;
}

}  // namespace emb

// Digits of each tile: counts[digit][tile].
// Grid: tiles; block: 256. Reads 8 bytes a pair, a load in flight a lane, and writes 1 KiB a tile;
// 8 KiB shared.
// Registers (sm_90): 23.
extern "C" __global__ void __launch_bounds__(emb::kSortThreads)
    emb_sort_count(const uint64_t* __restrict__ keys, uint32_t pairs, uint32_t shift,
                   uint32_t* __restrict__ counts) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, counters, [kSortWarps][kDigits]);
    const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    for (unsigned digit = lane; digit < kDigits; digit += kWarp) {
        counters[warp][digit] = 0;
    }
    __syncwarp();
    const uint64_t first = static_cast<uint64_t>(blockIdx.x) * kSortTile + warp * kWarpPairs + lane;
#pragma unroll 4
    for (unsigned round = 0; round < kSortRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        // The whole warp is past the pairs.
        if (i - lane >= pairs) {
            break;
        }
        const uint64_t key = i < pairs ? keys[i] : 0;
        count_in_warp(counters[warp], static_cast<unsigned>(key >> shift) % kDigits, i < pairs);
    }
    __syncthreads();
    uint32_t sum = 0;
    for (unsigned w = 0; w < kSortWarps; ++w) {
        sum += counters[w][threadIdx.x];
    }
    counts[static_cast<uint64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = sum;
}
EMB_KERNEL(emb_sort_count)

// Turns the counts of a digit into the pairs of that digit in the tiles before; `totals` gets the
// pairs of the digit.
// Grid: 256, a digit each; block: 32 to 256, as many as tiles. Reads 4 bytes a tile and digit and
// writes 4; and 4 a digit.
// Registers (sm_90): 30.
extern "C" __global__ void __launch_bounds__(emb::kSortThreads)
    emb_sort_scan(uint32_t* __restrict__ counts, uint32_t tiles, uint32_t* __restrict__ totals) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, sums, [kSortWarps]);
    uint32_t* const row = counts + static_cast<uint64_t>(blockIdx.x) * tiles;
    uint32_t before = 0;
    for (uint32_t start = 0; start < tiles; start += blockDim.x) {
        const uint32_t tile = start + threadIdx.x;
        const uint32_t count = tile < tiles ? row[tile] : 0;
        uint32_t total;
        const uint32_t exclusive = block_exclusive(count, sums, total);
        if (tile < tiles) {
            row[tile] = before + exclusive;
        }
        before += total;
    }
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = before;
    }
}
EMB_KERNEL(emb_sort_scan)

// Moves every pair to its place: after all smaller digits, and after equal digits that came before.
// Grid: tiles; block: 256. Reads 12 bytes a pair and writes 12, 16 loads in flight a lane; of a
// tile it reads 1 KiB of counts, and the totals, which are 1 KiB from cache. 8 KiB shared.
// Registers (sm_90): 80.
extern "C" __global__ void __launch_bounds__(emb::kSortThreads)
    emb_sort_scatter(const uint64_t* __restrict__ keys, const uint32_t* __restrict__ tags,
                     uint64_t* __restrict__ sorted_keys, uint32_t* __restrict__ sorted_tags,
                     uint32_t pairs, uint32_t shift, const uint32_t* __restrict__ counts,
                     const uint32_t* __restrict__ totals) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, counters, [kSortWarps][kDigits]);
    EMB_SHARED_ARRAY(uint32_t, sums, [kSortWarps]);
    const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    for (unsigned digit = lane; digit < kDigits; digit += kWarp) {
        counters[warp][digit] = 0;
    }
    __syncwarp();
    const uint64_t first = static_cast<uint64_t>(blockIdx.x) * kSortTile + warp * kWarpPairs + lane;
    uint64_t held[kSortRounds];
    uint32_t rank[kSortRounds];
#pragma unroll
    for (unsigned round = 0; round < kSortRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        held[round] = i < pairs ? keys[i] : 0;
    }
#pragma unroll
    for (unsigned round = 0; round < kSortRounds; ++round) {
        if (first - lane + round * kWarp >= pairs) {
            break;
        }
        const bool valid = first + round * kWarp < pairs;
        const unsigned digit = static_cast<unsigned>(held[round] >> shift) % kDigits;
        rank[round] = count_in_warp(counters[warp], digit, valid);
    }
    // Thread d: where the pairs of digit d of each warp begin.
    uint32_t all;
    const uint64_t cell = static_cast<uint64_t>(threadIdx.x) * gridDim.x + blockIdx.x;
    uint32_t place = block_exclusive(totals[threadIdx.x], sums, all) + counts[cell];
    for (unsigned w = 0; w < kSortWarps; ++w) {
        const uint32_t count = counters[w][threadIdx.x];
        counters[w][threadIdx.x] = place;
        place += count;
    }
    __syncthreads();
#pragma unroll
    for (unsigned round = 0; round < kSortRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        if (i < pairs) {
            const unsigned digit = static_cast<unsigned>(held[round] >> shift) % kDigits;
            const uint32_t to = counters[warp][digit] + rank[round];
            sorted_keys[to] = held[round];
            sorted_tags[to] = tags[i];
        }
    }
}
EMB_KERNEL(emb_sort_scatter)
