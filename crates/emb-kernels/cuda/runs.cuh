// Runs of equal keys among sorted ones: a run is a touched row with all its lookups.
#pragma once

#include "scan.cuh"
#include "tables.cuh"

namespace emb {

// One run. `runs[count]` is a sentinel that begins where the last one ends.
struct Run {
    uint64_t row;    // of the table
    uint32_t begin;  // first of its sorted lookups
    uint32_t table;
};
static_assert(sizeof(Run) == 16, "as in runs.rs");

// Lookups of a run that are summed by one part. A longer run is cut into chunks of this many from
// its begin on, whose sums are added in order: what a row's sum is does not depend on other rows.
// At 2,048 lookups the sums of chunks are a two-thousandth of the gradients.
constexpr uint32_t kChunk = 2048;

// One chunk of a long run; `begin == end` where there is none.
struct Chunk {
    uint32_t begin;
    uint32_t end;
    uint32_t table;
    uint32_t padding;
};
static_assert(sizeof(Chunk) == 16, "as in runs.rs");

// Where chunk `number` of a long run that begins at `begin` keeps its sum. Two chunks of long runs
// may begin within the same kChunk lookups: the last of one run and the first of the next.
__device__ __forceinline__ uint32_t chunk_slot(uint32_t begin, uint32_t number) {
    return 2 * (begin / kChunk + number) + (number == 0);
}

// Chunks of a run of `lookups`, or 0 where it is summed as it is.
__device__ __forceinline__ uint32_t chunks_of(uint32_t lookups) {
    return lookups > kChunk ? (lookups - 1) / kChunk + 1 : 0;
}

// The table of a key: the last whose first key is not above it.
__device__ __forceinline__ uint32_t table_of(const Table* tables, uint32_t count, uint64_t key) {
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        (tables[middle].first_key <= key ? low : high) = middle;
    }
    return low;
}

constexpr unsigned kRunThreads = 256;
constexpr unsigned kRunWarps = kRunThreads / kWarp;
constexpr unsigned kRunRounds = 16;                       // keys of a lane
constexpr unsigned kRunTile = kRunThreads * kRunRounds;   // 4,096, as in runs.rs

// Which of a warp's keys begin a run: bit `lane` of `heads[round]`. Returns how many do.
__device__ __forceinline__ uint32_t warp_heads(const uint64_t* keys, uint32_t count, uint64_t first,
                                               uint32_t (&heads)[kRunRounds]) {
    uint32_t sum = 0;
#pragma unroll
    for (unsigned round = 0; round < kRunRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        const bool head = i < count && (i == 0 || keys[i] != keys[i - 1]);
        heads[round] = __ballot_sync(kFullWarp, head);
        sum += __popc(heads[round]);
    }
    return sum;
}

// First key of this lane, in the tile of this block.
__device__ __forceinline__ uint64_t first_of_lane() {
    const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    return static_cast<uint64_t>(blockIdx.x) * kRunTile + warp * kWarp * kRunRounds + lane;
}

// Runs that begin before this warp's keys, given those before the tile; `warps` has a place for
// each warp.
__device__ __forceinline__ uint32_t runs_before_warp(uint32_t own, uint32_t tile, uint32_t* warps) {
    const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    if (lane == 0) {
        warps[warp] = own;
    }
    __syncthreads();
    for (unsigned w = 0; w < warp; ++w) {
        tile += warps[w];
    }
    return tile;
}

// Run of key `round` of this lane, given the runs that begin before its warp's round.
__device__ __forceinline__ uint32_t run_of(uint32_t before, uint32_t heads) {
    const unsigned lane = threadIdx.x % kWarp;
    return before + __popc(heads & (kFullWarp >> (kWarp - 1 - lane))) - 1;
}

}  // namespace emb
