// Which row each value of a batch looks up, and where its gradient comes from.
#pragma once

#include "tables.cuh"

namespace emb {

// Where the gradient of a lookup comes from, by position in the batch: only needed with per-sample
// weights, means or sequences. Without, a lookup's tag is its bag and all scales are 1.
struct Source {
    uint32_t bag;  // feature * batch + sample
    float scale;
};
static_assert(sizeof(Source) == 8, "as in keys.rs");

// The upstream gradient of a sequence feature: `[values of the feature, dim]`.
struct Sequence {
    const float* gradient;
    uint64_t stride;
};
static_assert(sizeof(Sequence) == 16, "as in keys.rs");

// The bag of value `i`: the last that does not begin after it (empty bags come before), in
// `low..high` where `offsets[low] <= i` and `offsets[high] > i`.
__device__ __forceinline__ uint32_t bag_of(const uint64_t* offsets, uint32_t low, uint32_t high,
                                           uint64_t i) {
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        (offsets[middle] <= i ? low : high) = middle;
    }
    return low;
}

}  // namespace emb
