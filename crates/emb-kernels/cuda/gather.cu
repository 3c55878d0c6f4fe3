// Rows of sequence features, without pooling: of one feature, or of all, one after the other.
//
// A warp takes `chunk` (at most 32) neighbouring ids, reads them with one load and copies their
// rows, as many at a time as its lanes hold, kRows of them in flight a group of lanes.
//
// Grid ceil(ids / chunk) / 8, block 256, no shared memory.
// Bytes read: 8 an id, dim * element bytes an id, 48 a feature that a warp meets, and offsets to
// find it by bisection. Bytes written: dim * 4 an id. Each row is read once per use, each output
// written once. 88 registers on sm_90 (80 on sm_80, 128 on sm_100), no spills.
#include "tables.cuh"
#include "vector.cuh"

namespace emb {

// Rows of one feature to be copied by a warp: those of lanes first .. end, which have the ids.
struct GatherRows {
    const Feature& feature;
    int64_t id;        // of this lane
    uint32_t first, end;
    float* out;        // row of the id of lane `first`
    uint64_t stride;
    uint32_t lanes;    // that share a row
    uint32_t tiles;
    uint32_t vector;   // bytes of a store

    template <typename T, int N> __device__ __forceinline__ void run() const {
        typedef typename Word<sizeof(T) * N>::type W;
        constexpr uint32_t kRows = 4;
        const uint32_t lane = threadIdx.x % kWarp, member = lane & (lanes - 1);
        const uint32_t group = lane / lanes, groups = kWarp / lanes, dim = feature.dim;
        const T* rows = static_cast<const T*>(feature.weights);
        for (uint32_t tile = 0; tile < tiles; ++tile) {
            const uint32_t column = (tile * kWarp + member) * N;
            for (uint32_t from = first; from < end; from += kRows * groups) {
                W row[kRows];
#pragma unroll
                for (uint32_t u = 0; u < kRows; ++u) {
                    const uint32_t source = from + u * groups + group;
                    const uint64_t number =
                        (uint64_t)__shfl_sync(kFullWarp, id, source < end ? source : first);
                    if (source < end && column < dim) {
                        const T* at = rows + element_at(number, dim, column);
                        row[u] = __ldg(reinterpret_cast<const W*>(at));
                    }
                }
#pragma unroll
                for (uint32_t u = 0; u < kRows; ++u) {
                    const uint32_t source = from + u * groups + group;
                    if (source < end && column < dim) {
                        float values[N];
#pragma unroll
                        for (int i = 0; i < N; ++i) values[i] = value_of<T>(row[u], i);
                        store_floats<N>(out + element_at(source - first, stride, column), values,
                                        vector);
                    }
                }
            }
        }
    }
};

}  // namespace emb

// Features first .. end of the batch. With `starts` (emb_describe_batch) row k of sequence feature
// f begins at element starts[f] + k * dim of `out`; without, there is one feature, which is copied
// whatever its pooling, and row k begins at k * stride.
extern "C" __global__ void __launch_bounds__(256, 2) emb_gather(
    const emb::Feature* features, uint32_t first, uint32_t end, const uint64_t* offsets,
    uint64_t batch, const int64_t* values, const uint64_t* starts, float* out, uint64_t stride,
    uint32_t chunk) {
    // Through a shuffle, so that the compiler sees that lanes of a warp do not part.
    const uint32_t in_block = __shfl_sync(emb::kFullWarp, threadIdx.x / emb::kWarp, 0);
    const uint64_t warp = (uint64_t)blockIdx.x * (blockDim.x / emb::kWarp) + in_block;
    const uint64_t begin = offsets[first * batch] + warp * chunk, last = offsets[end * batch];
    if (begin >= last) return;
    const uint64_t stop = begin + chunk < last ? begin + chunk : last;
    const uint32_t lane = threadIdx.x % emb::kWarp;
    const int64_t id = lane < stop - begin ? values[begin + lane] : 0;
    uint32_t f = emb::feature_at(offsets, batch, first, end, begin);
    for (uint64_t at = begin; at < stop; ++f) {
        const uint64_t feature_end = offsets[(f + 1) * batch];
        const uint64_t until = feature_end < stop ? feature_end : stop;
        if (until <= at) continue;
        const emb::Feature feature = features[f];
        if (!starts || feature.pooling == emb::kNone) {
            const emb::RowShape shape =
                emb::row_shape((uint64_t)feature.weights, feature.dim, feature.dtype);
            const uint64_t step = starts ? feature.dim : stride;
            float* to = out + (starts ? starts[f] : 0) + (at - offsets[f * batch]) * step;
            const emb::GatherRows rows{feature, id, (uint32_t)(at - begin),
                                       (uint32_t)(until - begin), to, step, shape.lanes,
                                       shape.tiles, emb::vector_bytes((uint64_t)to, step * 4)};
            emb::by_vector(__shfl_sync(emb::kFullWarp, feature.dtype, 0),
                           __shfl_sync(emb::kFullWarp, shape.vector, 0), rows);
        }
        at = until;
    }
}
EMB_KERNEL(emb_gather)
