// Ids of a batch against their tables, before anything is read by them or written.
//
// emb_describe_batch and then emb_check_ids fill a report that the host reads back:
//   [0] first position whose id is outside its table, or all ones
//   [1] last offset   [2] first position of the features   [3] position after them
//   [4] elements of the rows of all sequence features
//   [5] first index of an offset that is below the one before it, or not 0 itself, or all ones
#include "tables.cuh"

namespace emb {

enum Report {
    kFirstBad = 0,
    kLastOffset = 1,
    kFirst = 2,
    kEnd = 3,
    kElements = 4,
    kFirstBadOffset = 5,
};

}  // namespace emb

// Where the rows of every sequence feature go in the output of a gather of all, one feature after
// the other: starts[f] is the first element of feature f, starts[count] the number of elements.
//
// Grid 1, block 32. Reads 4 bytes of descriptor a feature and 20 more of offsets and descriptor a
// sequence feature, writes 8 a feature; besides reads 32 bytes of offsets and writes 56. 26
// registers on sm_90.
extern "C" __global__ void __launch_bounds__(32) emb_describe_batch(
    const emb::Feature* features, uint32_t count, const uint64_t* offsets, uint64_t batch,
    uint32_t first, uint32_t end, unsigned long long* report, uint64_t* starts) {
    const uint32_t lane = threadIdx.x;
    uint64_t before = 0;
    for (uint32_t from = 0; from < count; from += emb::kWarp) {
        const uint32_t f = from + lane;
        uint64_t own = 0;
        if (f < count && features[f].pooling == emb::kNone) {
            own = (offsets[(f + 1) * batch] - offsets[f * batch]) * features[f].dim;
        }
        uint64_t sum = own;
        for (uint32_t distance = 1; distance < emb::kWarp; distance *= 2) {
            const uint64_t other = __shfl_up_sync(emb::kFullWarp, sum, distance);
            if (lane >= distance) sum += other;
        }
        if (f < count) starts[f] = before + sum - own;
        before += __shfl_sync(emb::kFullWarp, sum, emb::kWarp - 1);
    }
    if (lane != 0) return;
    starts[count] = before;
    report[emb::kFirstBad] = ~0ull;
    report[emb::kLastOffset] = offsets[count * batch];
    report[emb::kFirst] = offsets[first * batch];
    report[emb::kEnd] = offsets[end * batch];
    report[emb::kElements] = before;
    report[emb::kFirstBadOffset] = offsets[0] == 0 ? ~0ull : 0;
}
EMB_KERNEL(emb_describe_batch)

// Finds the first id of features first..end, in the order of the batch, that its table does not
// have. A negative id is a huge unsigned one. And the first of all bags that ends before it begins,
// since lookups would read what is not theirs; whatever the offsets, this reads inside its arrays.
//
// Grid any, block 256: a block takes 1,024 positions at a time. Reads 8 bytes an id, once, four
// loads a thread in flight, and 8 bytes a bag and 8 at the end; finds the feature of a thread's
// first position by bisection, and reads 8 bytes of the descriptor. 36 registers on sm_90.
extern "C" __global__ void __launch_bounds__(256) emb_check_ids(
    const emb::Feature* features, uint32_t first, uint32_t end, const uint64_t* offsets,
    uint64_t batch, uint64_t bags, const int64_t* values, uint64_t len,
    unsigned long long* report) {
    constexpr int kInFlight = 4;
    const uint64_t begin = offsets[first * batch], last = offsets[end * batch];
    const uint64_t stop = last < len ? last : len;
    const uint64_t block = (uint64_t)kInFlight * blockDim.x;
    for (uint64_t at = begin + blockIdx.x * block + threadIdx.x; at < stop;
         at += gridDim.x * block) {
        uint64_t id[kInFlight];
#pragma unroll
        for (int u = 0; u < kInFlight; ++u) {
            const uint64_t position = at + (uint64_t)u * blockDim.x;
            id[u] = position < stop ? (uint64_t)values[position] : 0;
        }
        uint32_t f = emb::feature_at(offsets, batch, first, end, at);
#pragma unroll
        for (int u = 0; u < kInFlight; ++u) {
            const uint64_t position = at + (uint64_t)u * blockDim.x;
            if (position >= stop) break;
            while (position >= offsets[(f + 1) * batch]) ++f;
            if (id[u] >= features[f].rows) {
                atomicMin(&report[emb::kFirstBad], (unsigned long long)position);
                break;
            }
        }
    }
    for (uint64_t bag = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; bag < bags;
         bag += (uint64_t)gridDim.x * blockDim.x) {
        if (offsets[bag + 1] < offsets[bag]) {
            atomicMin(&report[emb::kFirstBadOffset], (unsigned long long)bag + 1);
        }
    }
}
EMB_KERNEL(emb_check_ids)
