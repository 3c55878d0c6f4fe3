// Routing: owners of ids, distinct ids, sums by distinct id. All rest on the sort of sort.cu.
#include "contributions.cuh"

namespace emb {

// Which owner has which row of one feature's table.
struct RowMap {
    uint64_t owners;
    uint64_t first;   // of its owners + 1 starts
    uint32_t modulo;  // 1: owner id % owners, local id / owners; 0: starts
    uint32_t padding;
};
static_assert(sizeof(RowMap) == 24, "as in route.rs");

// The owner of an id, or `owners` where it has none: the last whose range does not begin after it.
__device__ __forceinline__ uint64_t owner_of(const RowMap& map, const uint64_t* starts, int64_t id) {
    if (id < 0 || map.owners == 0) {
        return map.owners;
    }
    const uint64_t row = static_cast<uint64_t>(id);
    if (map.modulo) {
        return row % map.owners;
    }
    const uint64_t* const own = starts + map.first;
    if (row < own[0] || row >= own[map.owners]) {
        return map.owners;
    }
    uint64_t low = 0, high = map.owners;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (own[middle] <= row ? low : high) = middle;
    }
    return low;
}

__device__ __forceinline__ int64_t local_of(const RowMap& map, const uint64_t* starts,
                                            uint64_t owner, int64_t id) {
    const uint64_t row = static_cast<uint64_t>(id);
    return static_cast<int64_t>(map.modulo ? row / map.owners
                                           : row - starts[map.first + owner]);
}

}  // namespace emb

// Owner of every value, as a key, with its position as the tag; `first_bad` (all ones before) gets
// the first position without an owner.
// Grid: any, strides over the values; block: 256. Bytes: 8 a value in, 12 out; from cache 8 of
// offsets for each step of a search over the bags, and, with ranges, 16 of starts and 8 for each
// step of a search over the owners. One load in flight a lane.
// Registers (sm_90): 24.
extern "C" __global__ void __launch_bounds__(256)
    emb_owners(const int64_t* __restrict__ values, uint32_t count,
               const uint64_t* __restrict__ offsets, uint32_t batch, uint32_t bags,
               const emb::RowMap* __restrict__ maps, const uint64_t* __restrict__ starts,
               uint64_t* __restrict__ keys, uint32_t* __restrict__ tags, uint32_t* first_bad) {
    using namespace emb;
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        const RowMap& map = maps[bag_of(offsets, 0, bags, i) / batch];
        const uint64_t owner = owner_of(map, starts, values[i]);
        if (owner == map.owners) {
            atomicMin(first_bad, static_cast<uint32_t>(i));
        }
        keys[i] = owner;
        tags[i] = static_cast<uint32_t>(i);
    }
}
EMB_KERNEL(emb_owners)

// Values of every bag at every owner: lengths[owner][bag], zeroed before. A bag's counters are one
// thread's alone.
// Grid: any, strides over the bags; block: 256. Bytes: 8 a value and 8 a bag in; a value also
// reads and writes 8 of lengths, in cache: memory has each length that is not 0 in and out once.
// Registers (sm_90): 28.
extern "C" __global__ void __launch_bounds__(256)
    emb_owner_lengths(const uint64_t* __restrict__ offsets, uint32_t bags,
                      const uint64_t* __restrict__ owners, uint64_t* __restrict__ lengths) {
    for (uint64_t bag = blockIdx.x * blockDim.x + threadIdx.x; bag < bags;
         bag += gridDim.x * blockDim.x) {
        for (uint64_t i = offsets[bag]; i < offsets[bag + 1]; ++i) {
            lengths[owners[i] * bags + bag] += 1;
        }
    }
}
EMB_KERNEL(emb_owner_lengths)

// Local id and position of every value in the order of owners.
// Grid: any, strides over the values; block: 256. Bytes: 12 a value in (8 of them,
// its owner, matter with ranges only), 8 more scattered, 16 out; from cache 8 of offsets for each
// step of a search over the bags and, with ranges, 8 of starts.
// Registers (sm_90): 28.
extern "C" __global__ void __launch_bounds__(256)
    emb_owner_ids(const uint64_t* __restrict__ owners, const uint32_t* __restrict__ tags,
                  uint32_t count, const int64_t* __restrict__ values,
                  const uint64_t* __restrict__ offsets, uint32_t batch, uint32_t bags,
                  const emb::RowMap* __restrict__ maps, const uint64_t* __restrict__ starts,
                  int64_t* __restrict__ ids, uint64_t* __restrict__ positions) {
    using namespace emb;
    // Twice unrolled, the divisions need more registers than ptxas grants on sm_100.
#pragma unroll 1
    for (uint64_t k = blockIdx.x * blockDim.x + threadIdx.x; k < count;
         k += gridDim.x * blockDim.x) {
        const uint32_t position = tags[k];
        const RowMap& map = maps[bag_of(offsets, 0, bags, position) / batch];
        ids[k] = local_of(map, starts, owners[k], values[position]);
        positions[k] = position;
    }
}
EMB_KERNEL(emb_owner_ids)

// The tags of keys that are to be sorted: 0, 1, ..; with `indices` also the keys, which are these.
// Grid: any, strides over the keys; block: 256. Bytes: 4 a key out (4 in and 12 out with indices).
// Registers (sm_90): 12.
extern "C" __global__ void __launch_bounds__(256)
    emb_positions(const uint32_t* __restrict__ indices, uint32_t count,
                  uint64_t* __restrict__ keys, uint32_t* __restrict__ tags) {
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        if (indices) {
            keys[i] = indices[i];
        }
        tags[i] = static_cast<uint32_t>(i);
    }
}
EMB_KERNEL(emb_positions)

// Distinct ids, ascending, and the place of every input among them; `tile_runs` as emb_run_scan
// leaves it.
// Grid: tiles of 4,096; block: 256. Bytes: 12 a key and 4 a tile in, 4 a key out scattered, 8 a
// distinct id out; from cache the key before each, and a distinct one again. 16 loads in flight a
// lane.
// Registers (sm_90): 40.
extern "C" __global__ void __launch_bounds__(emb::kRunThreads)
    emb_unique(const uint64_t* __restrict__ keys, const uint32_t* __restrict__ tags, uint32_t count,
               const uint32_t* __restrict__ tile_runs, int64_t* __restrict__ ids,
               uint32_t* __restrict__ inverse) {
    using namespace emb;
    EMB_SHARED_ARRAY(uint32_t, warps, [kRunWarps]);
    const unsigned lane = threadIdx.x % kWarp;
    const uint64_t first = first_of_lane();
    uint32_t heads[kRunRounds];
    const uint32_t own = warp_heads(keys, count, first, heads);
    uint32_t before = runs_before_warp(own, tile_runs[blockIdx.x], warps);
#pragma unroll
    for (unsigned round = 0; round < kRunRounds; ++round) {
        const uint64_t i = first + round * kWarp;
        const uint32_t run = run_of(before, heads[round]);
        if (heads[round] >> lane & 1) {
            ids[run] = static_cast<int64_t>(keys[i]);
        }
        if (i < count) {
            inverse[tags[i]] = run;
        }
        before += __popc(heads[round]);
    }
}
EMB_KERNEL(emb_unique)

// Sets a matrix to 0.
// Grid: any, strides over the elements; block: 256. Bytes: 4 an element.
// Registers (sm_90): 20.
extern "C" __global__ void __launch_bounds__(256)
    emb_clear_rows(float* __restrict__ out, uint64_t rows, uint64_t cols, uint64_t stride) {
    for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols;
         i += gridDim.x * blockDim.x) {
        out[i / cols * stride + i % cols] = 0.0f;
    }
}
EMB_KERNEL(emb_clear_rows)

// Sums of the rows of `values` by run: those of run r, in ascending order, to row runs[r].row.
// However long a run is, one part adds it up: the bits are those of a plain loop.
// Grid: any, strides over the runs; block: 256. Bytes: a value's row 4 * cols, and 4 of tag for
// each block of 4 * lanes columns (of lanes where cols is no multiple of 4); a run 16 in and
// 4 * cols out; 4 loads of 16 bytes in flight a lane.
// Registers (sm_90): 58.
extern "C" __global__ void __launch_bounds__(256)
    emb_segment_sums(const emb::Run* __restrict__ runs, const uint32_t* __restrict__ run_count,
                     const uint32_t* __restrict__ tags, const float* __restrict__ values,
                     uint64_t stride, float* __restrict__ out, uint64_t out_stride, uint32_t cols,
                     uint32_t lanes) {
    using namespace emb;
    const Part part = Part::of(lanes);
    const uint32_t count = *run_count;
    for (uint64_t r = part.number(); r < count; r += part.count()) {
        const Run run = runs[r];
        const auto find = [&](uint32_t k) {
            return Contribution{values + tags[run.begin + k] * stride, 1.0f};
        };
        sum_row(part, runs[r + 1].begin - run.begin, find, INFINITY, cols,
                out + run.row * out_stride);
    }
}
EMB_KERNEL(emb_segment_sums)
