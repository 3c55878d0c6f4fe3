// Gradient of every per-sample weight of pooled features, with the sums of src/cpu/weights.rs.
//
// Eight lanes share a bag: lane j adds columns j, 8 + j, ... of <row, gradient> in f64, then the
// eight sums are added in order. With a mean the bag's products are corrected afterwards.
//
// Grid ceil(features * batch / 32), block 256, no shared memory.
// Bytes read: 8 an id (12 with weights), dim * element bytes an id, 4 * dim a bag of gradient (from
// cache for every id of the bag but its first), 8 a bag of offsets (its end is the next one's
// begin) and 48 of descriptors; written: 4 an id, and with a mean read and written once more. Each
// row is read once. A sequence writes 4 an id, zeros, and reads offsets only. Four columns a lane
// are in flight. 48 registers on sm_90 (48 on sm_80, 40 on sm_100), no spills.
#include "tables.cuh"
#include "vector.cuh"

namespace emb {

constexpr uint32_t kDotLanes = 8;

// <row, gradient>; all eight lanes of a group, `base` the first of them, get it.
template <typename T>
__device__ __forceinline__ double dot(const T* row, const float* gradient, uint32_t dim,
                                      uint32_t member, uint32_t base, unsigned group) {
    constexpr uint32_t kColumns = 4;
    double sum = 0.0;
    for (uint32_t column = member; column < dim; column += kColumns * kDotLanes) {
        float w[kColumns], g[kColumns];
#pragma unroll
        for (uint32_t u = 0; u < kColumns; ++u) {
            const uint32_t at = column + u * kDotLanes;
            w[u] = at < dim ? load(row[at]) : 0.0f;
            g[u] = at < dim ? gradient[at] : 0.0f;
        }
#pragma unroll
        for (uint32_t u = 0; u < kColumns; ++u) {
            if (column + u * kDotLanes < dim) sum += (double)w[u] * (double)g[u];
        }
    }
    double total = 0.0;
#pragma unroll
    for (uint32_t j = 0; j < kDotLanes; ++j) total += __shfl_sync(group, sum, base + j);
    return total;
}

// Bag from .. to of a pooled feature.
template <typename T>
__device__ __forceinline__ void bag_weight_gradients(
    const Feature& feature, const int64_t* values, const float* weights, const float* gradient,
    uint64_t from, uint64_t to, float* out, uint32_t member, uint32_t base, unsigned group) {
    const T* rows = static_cast<const T*>(feature.weights);
    float total = 0.0f;
    double weighted = 0.0;
    for (uint64_t k = from; k < to; ++k) {
        const T* row = rows + element_at((uint64_t)values[k], feature.dim, 0);
        const double product = dot(row, gradient, feature.dim, member, base, group);
        const float weight = weights ? weights[k] : 1.0f;
        total += weight;
        weighted += (double)weight * product;
        if ((k - from) % kDotLanes == member) out[k] = (float)product;
    }
    if (feature.pooling != kMean) return;
    // <pooled, gradient> without the pooled row: the mean of the products.
    const double sum = (double)total;
    for (uint64_t k = from + member; k < to; k += kDotLanes) {
        const double difference = (double)out[k] - weighted / sum;
        out[k] = sum == 0.0 ? 0.0f : (float)(difference / sum);
    }
}

}  // namespace emb

extern "C" __global__ void __launch_bounds__(256) emb_weight_gradients(
    const emb::Feature* features, uint32_t count, const uint64_t* offsets, uint64_t batch,
    const int64_t* values, const float* weights, const float* gradient, uint64_t stride,
    float* out) {
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t lane = threadIdx.x % emb::kWarp, member = lane % emb::kDotLanes;
    const uint32_t base = lane - member;
    const unsigned group = 0xffu << base;
    const uint64_t bag = thread / emb::kDotLanes;
    if (bag >= count * batch) return;
    const emb::Feature feature = features[bag / batch];
    const uint64_t from = offsets[bag], to = offsets[bag + 1];
    if (feature.pooling == emb::kNone) {
        for (uint64_t k = from + member; k < to; k += emb::kDotLanes) out[k] = 0.0f;
        return;
    }
    const float* own = gradient + emb::element_at(bag % batch, stride, feature.column);
    if (feature.dtype == emb::kF32) {
        emb::bag_weight_gradients<float>(feature, values, weights, own, from, to, out, member, base,
                                         group);
    } else if (feature.dtype == emb::kF16) {
        emb::bag_weight_gradients<__half>(feature, values, weights, own, from, to, out, member,
                                          base, group);
    } else {
        emb::bag_weight_gradients<__nv_bfloat16>(feature, values, weights, own, from, to, out,
                                                 member, base, group);
    }
}
EMB_KERNEL(emb_weight_gradients)
