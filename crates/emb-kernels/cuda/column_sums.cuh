// Sums of columns in a fixed order: 256 rows at a time, top to bottom, then those sums in order.
// It is the order of the CPU backend, and the shape of a launch does not change it.
#pragma once

#include "portable.cuh"

namespace emb {

constexpr int kSumRows = 256;  // rows of one sum, as BLOCK of src/cpu/pointwise.rs
constexpr int kSumCols = 32;   // columns of a block: 128 bytes of a row for each warp
constexpr int kSumLanes = 8;   // warps of a block, each with every eighth row

// The first stage. `read(row, col)` gives what an element needs from memory and
// `value(read, row, col)` what is summed; the reads of `kBatch` rows come before their values, which
// may write. `partials` is `[ceil(rows / 256), cols]`: with one row of it that is the result itself.
// Block `[32, 8]`, grid `[chunks of rows, tiles of columns]` or any other.
template <int kBatch, typename Read, typename Value>
__device__ __forceinline__ void column_partials(uint64_t rows, uint64_t cols, float* partials,
                                                Read read, Value value) {
    EMB_SHARED_ARRAY(float, tile, [kSumRows][kSumCols]);
    const uint64_t chunks = (rows + kSumRows - 1) / kSumRows;
    const uint64_t col_step = uint64_t(gridDim.y) * kSumCols;
    for (uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const uint64_t top = chunk * kSumRows;
        const int count = rows - top < kSumRows ? int(rows - top) : kSumRows;
        for (uint64_t first = uint64_t(blockIdx.y) * kSumCols; first < cols; first += col_step) {
            const uint64_t col = first + threadIdx.x;
            const int end = col < cols ? count : 0;
            for (int r = threadIdx.y; r < end; r += kSumLanes * kBatch) {
                decltype(read(top, col)) batch[kBatch] = {};
#pragma unroll
                for (int k = 0; k < kBatch; ++k) {
                    const int at = r + k * kSumLanes;
                    if (at < end) batch[k] = read(top + at, col);
                }
#pragma unroll
                for (int k = 0; k < kBatch; ++k) {
                    const int at = r + k * kSumLanes;
                    if (at < end) tile[at][threadIdx.x] = value(batch[k], top + at, col);
                }
            }
            __syncthreads();
            if (threadIdx.y == 0 && end > 0) {
                float sum = 0.0f;
                for (int r = 0; r < end; ++r) sum += tile[r][threadIdx.x];
                partials[chunk * cols + col] = sum;
            }
            // The next tile takes the place of this one.
            __syncthreads();
        }
    }
}

}  // namespace emb
