// Keys of a batch, one a value: the row over all tables of the group, and a tag that finds the
// gradient again after sorting.
#include "keys.cuh"

namespace emb {

constexpr unsigned kKeyThreads = 256;
constexpr unsigned kKeyTile = 1024;  // values of a block, as in keys.rs

}  // namespace emb

// What the bags of a mean divide by where there are per-sample weights: the sum of a bag's weights
// in bag order, as the CPU backend adds them.
// Grid: any; block: 256, a thread a bag. Reads 4 bytes a value and 8 a bag of offsets (its end is
// the next one's begin), writes 4 a bag; one load in flight a lane.
// Registers (sm_90): 30.
extern "C" __global__ void __launch_bounds__(256)
    emb_bag_totals(const uint64_t* __restrict__ offsets, uint32_t bags, uint32_t values,
                   const float* __restrict__ weights, float* __restrict__ totals) {
    for (uint64_t bag = blockIdx.x * blockDim.x + threadIdx.x; bag < bags;
         bag += gridDim.x * blockDim.x) {
        float total = 0.0f;
        // Of a batch that is foreseen, offsets are not checked yet.
        const uint64_t end = offsets[bag + 1] < values ? offsets[bag + 1] : values;
        for (uint64_t i = offsets[bag]; i < end; ++i) {
            total += weights[i];
        }
        totals[bag] = total;
    }
}
EMB_KERNEL(emb_bag_totals)

// Key and tag of every value; ids were checked. With `sources` a tag is the position of the value,
// and its source is written too; without, a tag is the bag. `weights` and `totals` may be null.
// Grid: tiles of 1,024 values; block: 256. Reads 8 bytes a value and writes 12 (20 with sources,
// which take 4 more in with weights, but for sequences). 8 bytes of offsets come from cache for
// each step of a search: two over all bags a tile, and one a value over the bags of its tile. 4
// loads in flight a lane.
// Registers (sm_90): 30.
extern "C" __global__ void __launch_bounds__(emb::kKeyThreads)
    emb_keys(const emb::Feature* __restrict__ features, const uint64_t* __restrict__ offsets,
             uint32_t batch, uint32_t bags, const int64_t* __restrict__ values, uint32_t count,
             const float* __restrict__ weights, const float* __restrict__ totals,
             uint64_t* __restrict__ keys, uint32_t* __restrict__ tags,
             emb::Source* __restrict__ sources) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, ends, [2]);
    const uint32_t first = blockIdx.x * kKeyTile;
    const uint32_t last = count - first < kKeyTile ? count - 1 : first + kKeyTile - 1;
    // The bags of this tile, so that each value searches few.
    if (threadIdx.x < 2) {
        ends[threadIdx.x] = bag_of(offsets, 0, bags, threadIdx.x == 0 ? first : last);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t j = threadIdx.x; j < kKeyTile; j += kKeyThreads) {
        if (j > last - first) {
            continue;
        }
        const uint32_t i = first + j;
        const uint32_t bag = bag_of(offsets, ends[0], ends[1] + 1, i);
        const Feature& feature = features[bag / batch];
        keys[i] = feature.first_key + static_cast<uint64_t>(values[i]);
        if (sources == nullptr) {
            tags[i] = bag;
            continue;
        }
        tags[i] = i;
        float scale = 1.0f;
        if (feature.pooling != kNone) {
            scale = weights ? weights[i] : 1.0f;
        }
        if (feature.pooling == kMean) {
            const float length = static_cast<float>(offsets[bag + 1] - offsets[bag]);
            const float total = totals ? totals[bag] : length;
            scale = total == 0.0f ? 0.0f : scale / total;
        }
        sources[i] = {bag, scale};
    }
}
EMB_KERNEL(emb_keys)
