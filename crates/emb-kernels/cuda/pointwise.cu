// Bias, activation and their gradients; fill; add. All are limited by memory. Registers here and in
// the other files are those of sm_90.
#include "column_sums.cuh"
#include "elements.cuh"

namespace emb {

enum Activation : uint32_t { kLinear = 0, kRelu = 1 };

// A NaN stays a NaN, so that a run that diverges shows it.
__device__ __forceinline__ float activate(float x, uint32_t activation) {
    return activation == kRelu && x < 0.0f ? 0.0f : x;
}

}  // namespace emb

// x = activation(x + bias) on every row.
//
// Grid and block: any, x along the columns and y along the rows; 256 threads and enough blocks to
// fill the device. Reads and writes 4 bytes an element; the bias stays in the caches. 16 bytes of
// each operand in flight a thread. 28 registers.
extern "C" __global__ void __launch_bounds__(256)
    emb_bias_activation(float* x, uint64_t stride, uint64_t rows, uint64_t cols,
                        const float* __restrict__ bias, uint32_t activation) {
    const bool aligned = emb::aligned_rows(x, stride, rows) && emb::aligned_rows(bias, 0, 1);
    emb::over_elements(rows, cols, aligned, [=](auto width, uint64_t row, uint64_t col) {
        constexpr int kWidth = decltype(width)::value;
        float* at = x + row * stride + col;
        auto sum = emb::read_pack<kWidth>(at);
        const auto add = emb::read_pack<kWidth>(bias + col);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
            sum.at[k] = emb::activate(sum.at[k] + add.at[k], activation);
        }
        emb::write_pack(at, sum);
    });
}
EMB_KERNEL(emb_bias_activation)

// The gradient of a linear layer's bias: column sums, first stage (see column_sums.cuh).
//
// Grid: [ceil(rows / 256), ceil(cols / 32)] or less; block [32, 8]; 32 KiB of shared memory. Reads
// 4 bytes an element, writes 4 bytes for 256 rows of a column. 8 reads of 4 bytes in flight a thread.
// 40 registers.
extern "C" __global__ void __launch_bounds__(256, 4)
    emb_column_sums(const float* __restrict__ x, uint64_t stride, uint64_t rows, uint64_t cols,
                    float* __restrict__ partials) {
    emb::column_partials<8>(
        rows, cols, partials, [=](uint64_t row, uint64_t col) { return x[row * stride + col]; },
        [](float x, uint64_t, uint64_t) { return x; });
}
EMB_KERNEL(emb_column_sums)

// The gradient of a layer with ReLU: masked by the layer's output `y` in place, and its column sums,
// first stage, in the same pass.
//
// Grid, block and shared memory as emb_column_sums. Reads 8 and writes 4 bytes an element, and
// writes 4 bytes for 256 rows of a column. 16 reads of 4 bytes in flight a thread. 43 registers.
extern "C" __global__ void __launch_bounds__(256, 4)
    emb_relu_backward(const float* __restrict__ y, uint64_t y_stride, float* __restrict__ gradient,
                      uint64_t stride, uint64_t rows, uint64_t cols, float* __restrict__ partials) {
    emb::column_partials<8>(
        rows, cols, partials,
        [=](uint64_t row, uint64_t col) {
            return make_float2(y[row * y_stride + col], gradient[row * stride + col]);
        },
        [=](float2 read, uint64_t row, uint64_t col) {
            const float masked = read.x > 0.0f ? read.y : 0.0f;
            gradient[row * stride + col] = masked;
            return masked;
        });
}
EMB_KERNEL(emb_relu_backward)

// The second stage of column sums: the rows of `partials` (`[chunks, cols]`) in order, 256 at a
// time through shared memory so that their reads overlap.
//
// Grid: [ceil(cols / 32)] or less; block [32, 8]; 32 KiB of shared memory. Reads 4 bytes an element
// of the partials, writes 4 a column. 8 reads of 4 bytes in flight a thread. 40 registers.
extern "C" __global__ void __launch_bounds__(256)
    emb_column_totals(const float* __restrict__ partials, uint64_t chunks, uint64_t cols,
                      float* __restrict__ out) {
    EMB_SHARED_ARRAY(float, tile, [emb::kSumRows][emb::kSumCols]);
    const uint64_t col_step = uint64_t(gridDim.x) * emb::kSumCols;
    for (uint64_t first = uint64_t(blockIdx.x) * emb::kSumCols; first < cols; first += col_step) {
        const uint64_t col = first + threadIdx.x;
        float total = 0.0f;
        for (uint64_t top = 0; top < chunks; top += emb::kSumRows) {
            const int count = chunks - top < emb::kSumRows ? int(chunks - top) : emb::kSumRows;
            if (col < cols) {
#pragma unroll 8
                for (int r = threadIdx.y; r < count; r += emb::kSumLanes) {
                    tile[r][threadIdx.x] = partials[(top + r) * cols + col];
                }
            }
            __syncthreads();
            if (threadIdx.y == 0 && col < cols) {
                for (int r = 0; r < count; ++r) total += tile[r][threadIdx.x];
            }
            __syncthreads();
        }
        if (threadIdx.y == 0 && col < cols) out[col] = total;
    }
}
EMB_KERNEL(emb_column_totals)

// x = value.
//
// Grid and block as emb_bias_activation. Writes 4 bytes an element, 16 a thread. 30 registers.
extern "C" __global__ void __launch_bounds__(256)
    emb_fill(float* x, uint64_t stride, uint64_t rows, uint64_t cols, float value) {
    const bool aligned = emb::aligned_rows(x, stride, rows);
    emb::over_elements(rows, cols, aligned, [=](auto width, uint64_t row, uint64_t col) {
        constexpr int kWidth = decltype(width)::value;
        emb::Pack<kWidth> pack;
#pragma unroll
        for (int k = 0; k < kWidth; ++k) pack.at[k] = value;
        emb::write_pack(x + row * stride + col, pack);
    });
}
EMB_KERNEL(emb_fill)

// out += x.
//
// Grid and block as emb_bias_activation. Reads 8 and writes 4 bytes an element. 2 reads of 16 bytes
// in flight a thread. 28 registers.
extern "C" __global__ void __launch_bounds__(256)
    emb_add(const float* __restrict__ x, uint64_t x_stride, float* __restrict__ out,
            uint64_t out_stride, uint64_t rows, uint64_t cols) {
    const bool aligned =
        emb::aligned_rows(x, x_stride, rows) && emb::aligned_rows(out, out_stride, rows);
    emb::over_elements(rows, cols, aligned, [=](auto width, uint64_t row, uint64_t col) {
        constexpr int kWidth = decltype(width)::value;
        float* at = out + row * out_stride + col;
        const auto from = emb::read_pack<kWidth>(x + row * x_stride + col);
        auto sum = emb::read_pack<kWidth>(at);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sum.at[k] += from.at[k];
        emb::write_pack(at, sum);
    });
}
EMB_KERNEL(emb_add)
