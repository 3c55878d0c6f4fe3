// The sum of the gradients of one row, by a part: 4, 8, 16 or 32 neighbouring lanes of a warp.
//
// Each lane holds columns; the lookups of the row come one after the other, in the order of the
// batch, so that a sum has the bits of the CPU backend's. Meanwhile every lane finds the gradient
// of one of the next lookups and tells the others: a lookup costs its gradient (dim * 4 bytes),
// and 4 bytes of tag (12 with sources) for every column block.
#pragma once

#include "keys.cuh"
#include "runs.cuh"
#include "vector.cuh"

namespace emb {

// Some neighbouring lanes of a warp that work on one row.
struct Part {
    uint32_t lanes;  // 4, 8, 16 or 32
    uint32_t lane;   // of this thread, in the part
    uint32_t base;   // lane in the warp of the part's first
    unsigned mask;   // the part's lanes in the warp

    __device__ static Part of(uint32_t lanes) {
        const uint32_t lane = threadIdx.x % kWarp;
        const uint32_t base = lane / lanes * lanes;
        return {lanes, lane - base, base, (kFullWarp >> (kWarp - lanes)) << base};
    }
    __device__ void sync() const { __syncwarp(mask); }
    template <typename T> __device__ T from(T x, uint32_t other) const {
        return __shfl_sync(mask, x, base + other);
    }
    // Number of the part among all of the grid, and how many there are.
    __device__ uint64_t number() const {
        return (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
    }
    __device__ uint64_t count() const {
        return static_cast<uint64_t>(gridDim.x) * blockDim.x / lanes;
    }
};

// The gradients of a batch, and how to find one by its tag.
struct Upstream {
    const uint32_t* tags;       // [lookups], sorted by row
    const Source* sources;      // by position; null where a tag is a bag
    const Feature* features;
    const uint64_t* offsets;    // [features * batch + 1]
    const Sequence* sequences;  // null without sequence features
    const float* pooled;        // [batch, stride]
    uint64_t stride;
    uint32_t batch;
};

// One gradient and what it is multiplied by.
struct Contribution {
    const float* row;
    float scale;
};

__device__ __forceinline__ Contribution contribution(const Upstream& upstream, uint32_t k) {
    const uint32_t tag = upstream.tags[k];
    Source source{tag, 1.0f};
    if (upstream.sources) {
        source = upstream.sources[tag];
    }
    const uint32_t f = source.bag / upstream.batch, sample = source.bag - f * upstream.batch;
    const Feature& feature = upstream.features[f];
    if (feature.pooling != kNone) {
        return {upstream.pooled + sample * upstream.stride + feature.column, source.scale};
    }
    // Tags are positions here.
    const Sequence& sequence = upstream.sequences[feature.sequence];
    const uint64_t position = tag - upstream.offsets[f * static_cast<uint64_t>(upstream.batch)];
    return {sequence.gradient + position * sequence.stride, source.scale};
}

// `x` within [-bound, bound]; NaN stays NaN.
__device__ __forceinline__ float clamp(float x, float bound) {
    return x > bound ? bound : (x < -bound ? -bound : x);
}

// V elements from an address that may be less aligned than they are.
template <int V> __device__ __forceinline__ Vector<float, V> load_floats(const float* from) {
    if (reinterpret_cast<uintptr_t>(from) % (V * sizeof(float)) == 0) {
        return load_vector<V>(from);
    }
    Vector<float, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) {
        out.v[i] = from[i];
    }
    return out;
}

// Gradients that a lane has in flight.
constexpr uint32_t kFlight = 4;

// Adds `count` contributions in order, V columns a lane and block of columns. `find(k)` is the k-th
// contribution; `out` is [dim], where this part's lanes write. All lanes of the part call it.
template <int V, typename Find>
__device__ __forceinline__ void sum_columns(const Part& part, uint32_t count, const Find& find,
                                            float bound, uint32_t dim, float* out) {
    for (uint32_t block = 0; block < dim; block += V * part.lanes) {
        const uint32_t column = block + V * part.lane;
        const bool inside = column < dim;
        Vector<float, V> sum{};
        for (uint32_t k = 0; k < count; k += part.lanes) {
            const uint32_t some = count - k < part.lanes ? count - k : part.lanes;
            const Contribution own = part.lane < some ? find(k + part.lane) : Contribution{};
            const uint64_t address = reinterpret_cast<uintptr_t>(own.row);
            for (uint32_t first = 0; first < some; first += kFlight) {
                Vector<float, V> gradient[kFlight];
                float scale[kFlight];
#pragma unroll
                for (uint32_t j = 0; j < kFlight; ++j) {
                    const float* const row = reinterpret_cast<const float*>(
                        static_cast<uintptr_t>(part.from(address, first + j)));
                    scale[j] = part.from(own.scale, first + j);
                    if (inside && first + j < some) {
                        gradient[j] = load_floats<V>(row + column);
                    }
                }
#pragma unroll
                for (uint32_t j = 0; j < kFlight; ++j) {
                    if (inside && first + j < some) {
#pragma unroll
                        for (int i = 0; i < V; ++i) {
                            sum.v[i] += clamp(gradient[j].v[i] * scale[j], bound);
                        }
                    }
                }
            }
        }
        if (inside) {
            store_vector<V>(out + column, sum);
        }
    }
}

// As `sum_columns`, with as wide loads as `dim` and the address of the sum allow.
template <typename Find>
__device__ __forceinline__ void sum_row(const Part& part, uint32_t count, const Find& find,
                                        float bound, uint32_t dim, float* out) {
    if (dim % 4 == 0 && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
        sum_columns<4>(part, count, find, bound, dim, out);
    } else {
        sum_columns<1>(part, count, find, bound, dim, out);
    }
}

}  // namespace emb
