// The element-wise part of a DCNv2 cross layer (Wang et al. 2021, arXiv 2008.13535, equation 2).
// Products and sums are not fused, as in the CPU backend: both give the same bits.
#include "column_sums.cuh"
#include "elements.cuh"

// out = x0 * (u + bias) + x.
//
// Grid and block: any, x along the columns and y along the rows; 256 threads and enough blocks to
// fill the device. Reads 12 and writes 4 bytes an element; the bias stays in the caches. 4 reads of
// 16 bytes in flight a thread. 30 registers.
extern "C" __global__ void __launch_bounds__(256)
    emb_cross(const float* __restrict__ x0, uint64_t x0_stride, const float* __restrict__ u,
              uint64_t u_stride, const float* __restrict__ bias, const float* __restrict__ x,
              uint64_t x_stride, float* __restrict__ out, uint64_t out_stride, uint64_t rows,
              uint64_t cols) {
    const bool aligned =
        emb::aligned_rows(x0, x0_stride, rows) && emb::aligned_rows(u, u_stride, rows) &&
        emb::aligned_rows(bias, 0, 1) && emb::aligned_rows(x, x_stride, rows) &&
        emb::aligned_rows(out, out_stride, rows);
    emb::over_elements(rows, cols, aligned, [=](auto width, uint64_t row, uint64_t col) {
        constexpr int kWidth = decltype(width)::value;
        const auto factor = emb::read_pack<kWidth>(x0 + row * x0_stride + col);
        const auto inner = emb::read_pack<kWidth>(u + row * u_stride + col);
        const auto shift = emb::read_pack<kWidth>(bias + col);
        auto sum = emb::read_pack<kWidth>(x + row * x_stride + col);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) {
            sum.at[k] = factor.at[k] * (inner.at[k] + shift.at[k]) + sum.at[k];
        }
        emb::write_pack(out + row * out_stride + col, sum);
    });
}
EMB_KERNEL(emb_cross)

// u_gradient = gradient * x0, x0_gradient += gradient * (u + bias), and the column sums of
// u_gradient, first stage (see column_sums.cuh), in the same pass.
//
// Grid: [ceil(rows / 256), ceil(cols / 32)] or less; block [32, 8]; 32 KiB of shared memory. Reads
// 16 and writes 8 bytes an element, and writes 4 bytes for 256 rows of a column. 16 reads of 4 bytes
// in flight a thread. 44 registers.
extern "C" __global__ void __launch_bounds__(256, 4)
    emb_cross_backward(const float* __restrict__ x0, uint64_t x0_stride,
                       const float* __restrict__ u, uint64_t u_stride,
                       const float* __restrict__ bias, const float* __restrict__ gradient,
                       uint64_t stride, float* __restrict__ u_gradient, uint64_t u_gradient_stride,
                       float* __restrict__ x0_gradient, uint64_t x0_gradient_stride, uint64_t rows,
                       uint64_t cols, float* __restrict__ partials) {
    emb::column_partials<4>(
        rows, cols, partials,
        [=](uint64_t row, uint64_t col) {
            return make_float4(x0[row * x0_stride + col], u[row * u_stride + col],
                               gradient[row * stride + col],
                               x0_gradient[row * x0_gradient_stride + col]);
        },
        [=](float4 read, uint64_t row, uint64_t col) {
            const float of_u = read.z * read.x;
            u_gradient[row * u_gradient_stride + col] = of_u;
            x0_gradient[row * x0_gradient_stride + col] = read.w + read.z * (read.y + bias[col]);
            return of_u;
        });
}
EMB_KERNEL(emb_cross_backward)
