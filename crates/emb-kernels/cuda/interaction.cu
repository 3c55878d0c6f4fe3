// Pairwise dot interaction (Naumov et al. 2019, arXiv 1906.00091, section 2.1.3): small matrix
// products, one for each sample, in shared memory and registers.
//
// Each output is one chain of fused multiply-adds, with the dimension (forward) or the feature
// (backward) ascending, as in the CPU backend: bitwise the same for every batch, pair order and
// launch.
#include "interaction.cuh"

namespace emb {
namespace interaction {

// 2 x 2 dot products, continued over `len` dimensions.
__device__ __forceinline__ void dots(float (&sum)[2][2], const float4* a0, const float4* a1,
                                     const float4* b0, const float4* b1, uint32_t len) {
    const auto step = [&sum](float p0, float p1, float q0, float q1) {
        sum[0][0] = fmaf(p0, q0, sum[0][0]);
        sum[0][1] = fmaf(p0, q1, sum[0][1]);
        sum[1][0] = fmaf(p1, q0, sum[1][0]);
        sum[1][1] = fmaf(p1, q1, sum[1][1]);
    };
    const uint32_t fours = len / 4;
    for (uint32_t k = 0; k < fours; ++k) {
        const float4 p0 = a0[k], p1 = a1[k], q0 = b0[k], q1 = b1[k];
        step(p0.x, p1.x, q0.x, q1.x);
        step(p0.y, p1.y, q0.y, q1.y);
        step(p0.z, p1.z, q0.z, q1.z);
        step(p0.w, p1.w, q0.w, q1.w);
    }
    for (uint32_t d = 4 * fours; d < len; ++d) {
        step(reinterpret_cast<const float*>(a0)[d], reinterpret_cast<const float*>(a1)[d],
             reinterpret_cast<const float*>(b0)[d], reinterpret_cast<const float*>(b1)[d]);
    }
}

// Pairs of features `rows` (block `y` of a triangle of blocks) with features `cols`.
template <int kFeatures>
__device__ __forceinline__ void forward(const Samples& x, float* __restrict__ out,
                                        uint64_t out_stride, uint32_t order) {
    using S = Shape<kFeatures>;
    constexpr int kTiles = S::kMany ? 2 : 1;
    EMB_SHARED_ARRAY(float4, tiles, [kTiles][S::kSamples][kFeatures][kStride]);
    const uint32_t member = threadIdx.x / S::kTeam, t = threadIdx.x % S::kTeam;
    const uint64_t sample = uint64_t(blockIdx.x) * S::kSamples + member;
    const bool live = sample < x.batch;
    const float* from = x.data + (live ? sample : 0) * x.stride;
    float* to = out + (live ? sample : 0) * out_stride;
    const bool vectors = aligned(x.data, x.stride, x.dim);

    uint32_t right_block = S::kMany ? blockIdx.y : 0;
    const uint32_t left_block = triangle_row(&right_block);
    const bool square = left_block != right_block;
    const uint32_t left_first = left_block * kFeatures, right_first = right_block * kFeatures;
    const uint32_t left_count = at_most(kFeatures, x.features - left_first);
    const uint32_t right_count = at_most(kFeatures, x.features - right_first);
    float4(*left)[kStride] = tiles[0][member];
    float4(*right)[kStride] = square ? tiles[kTiles - 1][member] : left;

    uint32_t row[S::kSquares], col[S::kSquares];
    float sum[S::kSquares][2][2] = {};
#pragma unroll
    for (int q = 0; q < S::kSquares; ++q) {
        uint32_t at = t + q * S::kTeam;
        if (square) {
            row[q] = 2 * (at / S::kHalf);
            col[q] = 2 * (at % S::kHalf);
        } else {
            row[q] = 2 * triangle_row(&at);
            col[q] = 2 * at;
        }
    }
    for (uint32_t column = 0; column < x.dim; column += kDims) {
        const uint32_t len = at_most(kDims, x.dim - column);
        if (live) {
            const float* at = from + uint64_t(left_first) * x.dim + column;
            load_tile<S::kTeam>(left, at, x.dim, left_count, len, vectors, t);
            if (square) {
                at = from + uint64_t(right_first) * x.dim + column;
                load_tile<S::kTeam>(right, at, x.dim, right_count, len, vectors, t);
            }
        }
        __syncthreads();
        if (live && left_block == 0) {
            const float* first = reinterpret_cast<const float*>(left[0]);
            for (uint32_t d = t; d < len; d += S::kTeam) to[column + d] = first[d];
        }
#pragma unroll
        for (int q = 0; q < S::kSquares; ++q) {
            if (live && row[q] < left_count && col[q] < right_count) {
                dots(sum[q], left[row[q]], left[row[q] + 1], right[col[q]], right[col[q] + 1], len);
            }
        }
        __syncthreads();
    }
    // Through shared memory, so that neighbouring threads write neighbouring columns.
#pragma unroll
    for (int q = 0; q < S::kSquares; ++q) {
        if (live && row[q] < left_count && col[q] < right_count) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                reinterpret_cast<float*>(left[row[q] + k / 2])[col[q] + k % 2] = sum[q][k / 2][k % 2];
            }
        }
    }
    __syncthreads();
    for (uint32_t k = t; live && k < kFeatures * kFeatures; k += S::kTeam) {
        const uint32_t outer = k / kFeatures, inner = k % kFeatures;
        const uint32_t i = order == kLower ? outer : inner, j = order == kLower ? inner : outer;
        const uint32_t high = left_first + i, low = right_first + j;
        if (i < left_count && j < right_count && low < high) {
            to[pair_column(x, order, high, low)] = reinterpret_cast<const float*>(left[i])[j];
        }
    }
}

// Gradients of features `first..first + kFeatures` (block `y`): the symmetric matrix of pair
// gradients, its diagonal 0, times the sample.
template <int kFeatures>
__device__ __forceinline__ void backward(const Samples& x, const float* __restrict__ gradient,
                                         uint64_t gradient_stride, float* __restrict__ x_gradient,
                                         uint64_t x_gradient_stride, uint32_t order) {
    using S = Shape<kFeatures>;
    EMB_SHARED_ARRAY(float4, tiles, [S::kSamples][kFeatures][kStride]);
    EMB_SHARED_ARRAY(float4, matrices, [S::kSamples][kFeatures][kFeatures / 4]);
    const uint32_t member = threadIdx.x / S::kTeam, t = threadIdx.x % S::kTeam;
    const uint64_t sample = uint64_t(blockIdx.x) * S::kSamples + member;
    const bool live = sample < x.batch;
    const float* from = x.data + (live ? sample : 0) * x.stride;
    const float* __restrict__ upstream = gradient + (live ? sample : 0) * gradient_stride;
    float* to = x_gradient + (live ? sample : 0) * x_gradient_stride;
    const bool vectors = aligned(x.data, x.stride, x.dim);
    const bool whole = aligned(x_gradient, x_gradient_stride, x.dim);
    float4(*tile)[kStride] = tiles[member];
    float4(*matrix)[kFeatures / 4] = matrices[member];

    const uint32_t first = S::kMany ? blockIdx.y * kFeatures : 0;
    // 4 features and 4 dimensions of one thread.
    const uint32_t row = 4 * (t / kFours), four = t % kFours;
    for (uint32_t column = 0; column < x.dim; column += kDims) {
        const uint32_t len = at_most(kDims, x.dim - column);
        const uint32_t mine = column + 4 * four;
        float sum[4][4] = {};
        // The chains of the first feature begin with the gradient of its copy in the output.
        if (live && first + row == 0) {
#pragma unroll
            for (int d = 0; d < 4; ++d) {
                if (mine + d < x.dim) sum[0][d] = upstream[mine + d];
            }
        }
        const uint32_t end = S::kMany ? x.features : 1;
        for (uint32_t other = 0; other < end; other += kFeatures) {
            const uint32_t count = at_most(kFeatures, x.features - other);
            if (live && (column == 0 || end > kFeatures)) {
                in_batches<S::kTeam>(
                    t, count * kFeatures,
                    [&](uint32_t k) {
                        const uint32_t i = first + k % kFeatures, j = other + k / kFeatures;
                        // Of a symmetric part one half is read.
                        if (i >= x.features || (first == other && i <= j)) return 0.0f;
                        return upstream[pair_column(x, order, i > j ? i : j, i > j ? j : i)];
                    },
                    [=](uint32_t k, float read) {
                        const uint32_t i = k % kFeatures, j = k / kFeatures;
                        if (first == other && i < j) return;
                        reinterpret_cast<float*>(matrix[j])[i] = read;
                        if (first == other) reinterpret_cast<float*>(matrix[i])[j] = read;
                    });
            }
            if (live) {
                const float* at = from + uint64_t(other) * x.dim + column;
                load_tile<S::kTeam>(tile, at, x.dim, count, len, vectors, t);
            }
            __syncthreads();
            if (live && mine < x.dim) {
#pragma unroll 4
                for (uint32_t k = 0; k < count; ++k) {
                    const float4 a = matrix[k][row / 4], b = tile[k][four];
                    const float p[4] = {a.x, a.y, a.z, a.w}, q[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
#pragma unroll
                        for (int d = 0; d < 4; ++d) sum[i][d] = fmaf(p[i], q[d], sum[i][d]);
                    }
                }
            }
            // The next tile takes the place of this one.
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!live || first + row + i >= x.features || mine >= x.dim) continue;
            float* at = to + uint64_t(first + row + i) * x.dim + mine;
            if (whole) {
                *reinterpret_cast<float4*>(at) =
                    make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
            } else {
#pragma unroll
                for (int d = 0; d < 4; ++d) {
                    if (mine + d < x.dim) at[d] = sum[i][d];
                }
            }
        }
    }
}

}  // namespace interaction
}  // namespace emb

// Kernels for at most 8, at most 16 and any number of features.
#define EMB_INTERACT(FEATURES)                                                                     \
    extern "C" __global__ void __launch_bounds__(emb::interaction::kThreads)                      \
        emb_interact_##FEATURES(const float* x, uint64_t x_stride, uint64_t batch,                \
                                uint32_t features, uint32_t dim, float* out, uint64_t out_stride, \
                                uint32_t order) {                                                 \
        const emb::interaction::Samples samples{x, x_stride, batch, features, dim};               \
        emb::interaction::forward<FEATURES>(samples, out, out_stride, order);                     \
    }                                                                                             \
    EMB_KERNEL(emb_interact_##FEATURES)

#define EMB_INTERACT_BACKWARD(FEATURES)                                                            \
    extern "C" __global__ void __launch_bounds__(emb::interaction::kThreads, 6)                   \
        emb_interact_backward_##FEATURES(const float* x, uint64_t x_stride, uint64_t batch,       \
                                         uint32_t features, uint32_t dim, const float* gradient,  \
                                         uint64_t gradient_stride, float* x_gradient,             \
                                         uint64_t x_gradient_stride, uint32_t order) {            \
        const emb::interaction::Samples samples{x, x_stride, batch, features, dim};               \
        emb::interaction::backward<FEATURES>(samples, gradient, gradient_stride, x_gradient,      \
                                             x_gradient_stride, order);                           \
    }                                                                                             \
    EMB_KERNEL(emb_interact_backward_##FEATURES)

// Row b of `out` becomes the first vector of sample b, then the dot products of all pairs.
//
// With F = 8, 16, 32: grid [ceil(batch * F / 32), 1], for emb_interact_32 [batch, n * (n + 1) / 2]
// with n = ceil(features / 32); block 128. Reads features * dim * 4 bytes a sample (times n above
// 32 features) and writes dim + features * (features - 1) / 2 floats. 4 reads of 16 bytes in flight
// a thread. 50, 56 and 64 registers, 9 KiB (F = 32: 17 KiB) of shared memory.
EMB_INTERACT(8)
EMB_INTERACT(16)
EMB_INTERACT(32)

// `x_gradient` is overwritten with the gradient of `x`.
//
// With F = 8, 16, 32: grid [ceil(batch * F / 32), 1], for emb_interact_backward_32 [batch, n]
// with n = ceil(features / 32); block 128. Reads features * dim + dim + features * (features - 1) / 2
// floats a sample and writes features * dim. Above 32 features it reads features * dim n times, and
// for every 64 dimensions the gradients of pairs again: once a pair of one block, twice of two. 4
// reads of 16 bytes in flight a thread. 72, 80 and 76 registers, 10, 11 and 13 KiB of shared
// memory.
EMB_INTERACT_BACKWARD(8)
EMB_INTERACT_BACKWARD(16)
EMB_INTERACT_BACKWARD(32)
