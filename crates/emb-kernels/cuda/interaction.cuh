// What both directions of the interaction share: the shape of a block, tiles of samples in shared
// memory, and where a pair is in the output.
#pragma once

#include "portable.cuh"

namespace emb {
namespace interaction {

enum PairOrder : uint32_t { kLower = 0, kUpper = 1 };

constexpr int kThreads = 128;
constexpr int kDims = 64;              // dimensions of a tile
constexpr int kFours = kDims / 4;      // the same in 16-byte pieces
constexpr int kStride = kFours + 1;    // one piece more, so that rows begin in other banks

// How the threads of a block share samples: `kFeatures` at a time, 4 threads for each, so that
// samples of few features do not leave most of a block idle.
template <int kFeatures> struct Shape {
    static constexpr int kTeam = 4 * kFeatures;        // threads of a sample
    static constexpr int kSamples = kThreads / kTeam;  // samples of a block
    static constexpr int kHalf = kFeatures / 2;
    // Only the widest shape is used for more features than it has.
    static constexpr bool kMany = kFeatures == 32;
    // 2 x 2 pairs of one thread: all pairs of two blocks of features, or the lower triangle of one.
    static constexpr int kSquares = kMany ? kHalf * kHalf / kTeam : 1;
    static_assert(kMany || kHalf * (kHalf + 1) / 2 <= kTeam, "a triangle fits the team");
};

// A matrix whose rows are samples of `[features, dim]`.
struct Samples {
    const float* __restrict__ data;
    uint64_t stride;
    uint64_t batch;
    uint32_t features;
    uint32_t dim;
};

__device__ __forceinline__ uint32_t at_most(uint32_t limit, uint32_t count) {
    return count < limit ? count : limit;
}

// Column of the pair of `high` > `low` in the output.
__device__ __forceinline__ uint64_t pair_column(const Samples& x, uint32_t order, uint64_t high,
                                                uint64_t low) {
    return x.dim + (order == kLower ? high * (high - 1) / 2 + low
                                    : low * (2 * uint64_t(x.features) - low - 1) / 2 + high - low - 1);
}

// The row `k` of a triangle whose rows have 1, 2, 3, .. entries; `k` becomes the place in the row.
__device__ __forceinline__ uint32_t triangle_row(uint32_t* k) {
    uint32_t row = 0;
    while (*k > row) {
        ++row;
        *k -= row;
    }
    return row;
}

// Whether 16 bytes can be read and written at once in a matrix of vectors of `dim`.
__device__ __forceinline__ bool aligned(const float* data, uint64_t stride, uint32_t dim) {
    return (reinterpret_cast<uintptr_t>(data) | (stride | dim) * sizeof(float)) % 16 == 0;
}

// Calls `write(k, read(k))` for `k` in `t, t + kTeam, ..` below `end`; four reads are in flight
// before the first write.
template <int kTeam, typename Read, typename Write>
__device__ __forceinline__ void in_batches(uint32_t t, uint32_t end, Read read, Write write) {
    constexpr int kBatch = 4;
    for (uint32_t first = t; first < end; first += kBatch * kTeam) {
        decltype(read(t)) batch[kBatch] = {};
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            if (first + k * kTeam < end) batch[k] = read(first + k * kTeam);
        }
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
            if (first + k * kTeam < end) write(first + k * kTeam, batch[k]);
        }
    }
}

// Copies `count` features from `from` on, `len` dimensions of each, to a tile; 0 up to its end.
// `t` counts the threads of the team.
template <int kTeam>
__device__ __forceinline__ void load_tile(float4 (*tile)[kStride], const float* __restrict__ from,
                                          uint32_t dim, uint32_t count, uint32_t len, bool vectors,
                                          uint32_t t) {
    if (vectors) {
        in_batches<kTeam>(
            t, count * kFours,
            [=](uint32_t k) {
                const uint32_t d = 4 * (k % kFours);
                const float* at = from + uint64_t(k / kFours) * dim + d;
                return d < len ? *reinterpret_cast<const float4*>(at) : float4{};
            },
            [=](uint32_t k, float4 read) { tile[k / kFours][k % kFours] = read; });
    } else {
        in_batches<kTeam>(
            t, count * kDims,
            [=](uint32_t k) {
                const uint32_t d = k % kDims;
                return d < len ? from[uint64_t(k / kDims) * dim + d] : 0.0f;
            },
            [=](uint32_t k, float read) {
                reinterpret_cast<float*>(tile[k / kDims])[k % kDims] = read;
            });
    }
}

}  // namespace interaction
}  // namespace emb
