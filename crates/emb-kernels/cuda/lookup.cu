// Pooled lookup of all features of a batch in one launch.
//
// A row is shared by `lanes` neighbouring lanes of a warp, a vector of up to 16 bytes each
// (vector.cuh); wider rows are cut into tiles of 32 vectors, each for a warp of its own. A group of
// lanes walks `chunk` neighbouring bags of one feature as one list of ids, so that rows of the next
// bag are on their way while one is being finished: short bags keep as many loads in flight as long
// ones. Rows are added in bag order with f32 accumulation, each product rounded before its sum.
//
// For 32 * chunk samples, `lanes` warps a feature and tile: all features of the batch together are
// a list of slots, one a warp, which the host makes once for a FeatureMap.
//
// Grid ceil(batch / (32 * chunk)) * slots / 8, block 256, no shared memory.
// Bytes read: 8 an id and tile (12 with per-sample weights), dim * element bytes an id, and for
// every group of `chunk` bags and tile 8 * (bags + 1) of offsets; 8 + 48 a warp of descriptors.
// Bytes written: dim * 4 a bag. Each row is read once per use, each output written once.
// Eight rows a group of lanes are in flight (four where a lane has eight elements of one), and the
// ids after them. 80 registers on sm_90 (78 on sm_80, 80 on sm_100), no spills: three blocks, 768
// threads with 64 to 128 bytes each in flight, a multiprocessor.
#include "tables.cuh"
#include "vector.cuh"

namespace emb {

// What one group of lanes does: bags first .. first + bags of a feature.
struct PoolBags {
    const Feature& feature;
    const uint64_t* offsets;
    const int64_t* values;
    const float* weights;  // or null
    float* out;            // column 0 of the feature, of sample 0
    uint64_t stride;
    uint64_t bag;     // number of the first bag in the batch
    uint64_t sample;  // of the first bag
    uint32_t bags;    // at most 8, and 0 beyond the batch
    uint32_t lanes;
    uint32_t tile;
    uint32_t vector;  // bytes of a store

    template <typename T, int N> __device__ __forceinline__ void run() const;
};

// The sum of a bag, as it is written: divided for a mean, 0 where there is none.
template <int N>
__device__ __forceinline__ void finish_bag(float* to, float (&sum)[N], float total, bool mean,
                                           uint32_t vector) {
    if (mean) {
#pragma unroll
        for (int i = 0; i < N; ++i) sum[i] = total == 0.0f ? 0.0f : sum[i] / total;
    }
    store_floats<N>(to, sum, vector);
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] = 0.0f;
}

template <typename T, int N> __device__ __forceinline__ void PoolBags::run() const {
    // As many rows in flight as fit 80 registers, with which a multiprocessor has three blocks.
    constexpr uint32_t kRows = N == 8 ? 4 : 8;
    const uint32_t lane = threadIdx.x % kWarp, member = lane & (lanes - 1), base = lane - member;
    const uint32_t column = tile * kWarp * N + member * N;
    const bool active = column < feature.dim;
    const T* rows = static_cast<const T*>(feature.weights) + column;
    const uint32_t dim = feature.dim;
    float* to = out + element_at(sample, stride, column);

    // Lane m of the group has the end of bag m; from here on positions count from the first id.
    uint64_t start = member == 0 && bags != 0 ? offsets[bag] : 0;
    start = __shfl_sync(kFullWarp, start, base);
    const uint32_t ends = member < bags ? (uint32_t)(offsets[bag + 1 + member] - start) : 0;
    const uint32_t count = __shfl_sync(kFullWarp, ends, base + (bags == 0 ? 0 : bags - 1));
    uint32_t end = __shfl_sync(kFullWarp, ends, base), done = 0;

    start += member;
    int64_t id = 0, next_id = member < count ? values[start] : 0;
    float scale = 1.0f, next_scale = weights && member < count ? weights[start] : 1.0f;
    float sum[N] = {}, total = 0.0f;
    // Writes the bag of every group where `ends_here`; the whole warp calls it.
    const auto next_bag = [&](bool ends_here) {
        const uint32_t before = __shfl_sync(kFullWarp, ends, base + (done == 0 ? 0 : done - 1));
        const uint32_t next = done + 1 < lanes ? done + 1 : done;
        const uint32_t after = __shfl_sync(kFullWarp, ends, base + next);
        if (!ends_here) return;
        if (!weights) total = (float)(end - (done == 0 ? 0 : before));
        if (active) finish_bag<N>(to, sum, total, feature.pooling == kMean, vector);
        total = 0.0f;
        to += stride;
        ++done;
        end = after;
    };
    // Groups of a warp go on together, the shorter ones idly: their loads stay in flight together.
    for (uint32_t k = 0; __any_sync(kFullWarp, k < count); k += kRows) {
        const uint32_t place = k & (lanes - 1), source = base + place;
        if (place == 0) {
            id = next_id;
            scale = next_scale;
            start += lanes;
            if (k + lanes + member < count) {
                next_id = values[start];
                if (weights) next_scale = weights[start];
            }
        }
        typedef typename Word<sizeof(T) * N>::type W;
        W row[kRows];
#pragma unroll
        for (uint32_t u = 0; u < kRows; ++u) {
            const uint64_t number = (uint64_t)__shfl_sync(kFullWarp, id, source + u);
            if (active && k + u < count) {
                row[u] = __ldg(reinterpret_cast<const W*>(rows + element_at(number, dim, 0)));
            }
        }
        const auto add = [&](const W& word, float factor) {
            total += factor;
#pragma unroll
            for (int i = 0; i < N; ++i) sum[i] += factor * value_of<T>(word, i);
        };
        const bool idle = k >= count;
        if (__all_sync(kFullWarp, idle || (end - k >= kRows && count - k >= kRows))) {
            // No bag ends before the last of these rows.
#pragma unroll
            for (uint32_t u = 0; u < kRows; ++u) {
                const float factor = weights ? __shfl_sync(kFullWarp, scale, source + u) : 1.0f;
                if (!idle) add(row[u], factor);
            }
            continue;
        }
#pragma unroll 1
        for (uint32_t u = 0; u < kRows; ++u) {
            while (__any_sync(kFullWarp, k + u < count && k + u == end)) {
                next_bag(k + u < count && k + u == end);
            }
            const float factor = weights ? __shfl_sync(kFullWarp, scale, source + u) : 1.0f;
            if (k + u < count) add(row[0], factor);
            // The next row moves to the front: registers have no numbers at run time.
#pragma unroll
            for (uint32_t next = 1; next < kRows; ++next) row[next - 1] = row[next];
        }
    }
    // The last bag that has ids, and the empty ones after it.
    while (__any_sync(kFullWarp, done < bags)) next_bag(done < bags);
}

}  // namespace emb

extern "C" __global__ void __launch_bounds__(256, 3) emb_pool(
    const emb::Feature* features, const emb::Slot* slots, uint32_t slot_count,
    const uint64_t* offsets, const int64_t* values, const float* weights, float* out,
    uint64_t stride, uint64_t batch, uint32_t chunk) {
    // Through a shuffle, so that the compiler sees that lanes of a warp do not part.
    const uint32_t warp = __shfl_sync(
        emb::kFullWarp, blockIdx.x * (blockDim.x / emb::kWarp) + threadIdx.x / emb::kWarp, 0);
    const uint64_t block = (uint64_t)(warp / slot_count) * emb::kWarp * chunk;
    if (block >= batch) return;
    const emb::Slot slot = slots[warp % slot_count];
    const emb::Feature feature = features[slot.feature];
    const uint32_t lanes = slot.lanes, groups = emb::kWarp / lanes;
    const uint32_t group = slot.part % lanes * groups + threadIdx.x % emb::kWarp / lanes;
    const uint64_t sample = block + (uint64_t)group * chunk;
    const uint64_t left = sample < batch ? batch - sample : 0;
    emb::PoolBags bags{feature, offsets, values, weights, out + feature.column, stride,
                       slot.feature * batch + sample, sample,
                       left < chunk ? (uint32_t)left : chunk, lanes, slot.part / lanes,
                       emb::vector_bytes((uint64_t)(out + feature.column), stride * 4)};
    emb::by_vector(__shfl_sync(emb::kFullWarp, feature.dtype, 0),
                   __shfl_sync(emb::kFullWarp, slot.vector, 0), bags);
}
EMB_KERNEL(emb_pool)
