// Prefix sums over a warp and over a block, and which lanes hold an equal digit.
#pragma once

#include "portable.cuh"

namespace emb {

// Sum of `x` over the lanes up to this one.
__device__ __forceinline__ uint32_t warp_inclusive(uint32_t x) {
    const unsigned lane = threadIdx.x % kWarp;
    for (unsigned offset = 1; offset < kWarp; offset *= 2) {
        const uint32_t below = __shfl_sync(kFullWarp, x, lane >= offset ? lane - offset : lane);
        x += lane >= offset ? below : 0;
    }
    return x;
}

// Sum of `x` over the threads before this one; `total` is that of all. `sums` has a place for each
// of the block's warps, at most 32; all threads call, and may call again at once.
__device__ __forceinline__ uint32_t block_exclusive(uint32_t x, uint32_t* sums, uint32_t& total) {
    const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const uint32_t inclusive = warp_inclusive(x);
    if (lane == kWarp - 1) {
        sums[warp] = inclusive;
    }
    __syncthreads();
    uint32_t before = 0;
    total = 0;
    for (unsigned w = 0; w < blockDim.x / kWarp; ++w) {
        before += w < warp ? sums[w] : 0;
        total += sums[w];
    }
    __syncthreads();
    return before + inclusive - x;
}

// The lanes whose 8-bit digit is this one's, among those with `valid`.
__device__ __forceinline__ unsigned same_digit(unsigned digit, bool valid) {
    unsigned lanes = __ballot_sync(kFullWarp, valid);
    for (unsigned bit = 0; bit < 8; ++bit) {
        const bool set = digit >> bit & 1;
        const unsigned with = __ballot_sync(kFullWarp, set);
        lanes &= set ? with : ~with;
    }
    return lanes;
}

}  // namespace emb
