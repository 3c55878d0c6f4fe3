// Walks over the elements of matrices, 16 bytes a thread where they lie so: what the element-wise
// dense kernels share.
#pragma once

#include "portable.cuh"

namespace emb {

// `N` neighbouring elements in registers.
template <int N> struct Pack {
    float at[N];
};

template <int N> __device__ __forceinline__ Pack<N> read_pack(const float* from) {
    Pack<N> pack;
    if constexpr (N == 4) {
        const float4 whole = *reinterpret_cast<const float4*>(from);
        pack.at[0] = whole.x;
        pack.at[1] = whole.y;
        pack.at[2] = whole.z;
        pack.at[3] = whole.w;
    } else {
        static_assert(N == 1, "one element or 16 bytes");
        pack.at[0] = *from;
    }
    return pack;
}

template <int N> __device__ __forceinline__ void write_pack(float* to, const Pack<N>& pack) {
    if constexpr (N == 4) {
        *reinterpret_cast<float4*>(to) = make_float4(pack.at[0], pack.at[1], pack.at[2], pack.at[3]);
    } else {
        static_assert(N == 1, "one element or 16 bytes");
        *to = pack.at[0];
    }
}

// Whether every row of a matrix begins on 16 bytes; `stride` is in floats.
__device__ __forceinline__ bool aligned_rows(const float* data, uint64_t stride, uint64_t rows) {
    const uint64_t apart = rows > 1 ? stride * sizeof(float) : 0;
    return (reinterpret_cast<uintptr_t>(data) | apart) % 16 == 0;
}

// How many elements a call of `over_elements` is for.
template <int N> struct Width {
    static constexpr int value = N;
};

// Calls `each(Width<4>{} or Width<1>{}, row, first column)` so that every element of
// `[rows, cols]` is met once: fours where the rows of all matrices are `aligned`, then what is left
// of a row. Any grid and block do; their x goes along the columns, their y along the rows.
template <typename Each>
__device__ __forceinline__ void over_elements(uint64_t rows, uint64_t cols, bool aligned, Each each) {
    const uint64_t fours = aligned ? cols / 4 : 0;
    const uint64_t units = cols - 3 * fours;
    const uint64_t row_step = uint64_t(gridDim.y) * blockDim.y;
    const uint64_t unit_step = uint64_t(gridDim.x) * blockDim.x;
    uint64_t row = uint64_t(blockIdx.y) * blockDim.y + threadIdx.y;
    for (; row < rows; row += row_step) {
        uint64_t unit = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
        for (; unit < units; unit += unit_step) {
            if (unit < fours) {
                each(Width<4>{}, row, 4 * unit);
            } else {
                each(Width<1>{}, row, 3 * fours + unit);
            }
        }
    }
}

}  // namespace emb
