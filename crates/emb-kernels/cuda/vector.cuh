// Loads and stores of several elements at once: 16 bytes where addresses allow, else 8, 4 or 2.
//
// A row of `dim` elements can be read in vectors when its address and its bytes are multiples of
// the vector; `vector_bytes` says which. A warp that reads 16 bytes a lane asks for 512 bytes with
// one instruction.
#pragma once

#include "portable.cuh"

namespace emb {

// Element `column` of row `row` of a matrix: 64 bits, since rows * dim is beyond 2^32.
__host__ __device__ __forceinline__ uint64_t element_at(uint64_t row, uint64_t stride,
                                                        uint64_t column) {
    return row * stride + column;
}

// Largest vector that divides both an address and the bytes between two rows; at most 16.
__host__ __device__ __forceinline__ uint32_t vector_bytes(uint64_t address, uint64_t row_bytes) {
    const uint64_t both = address | row_bytes | 16;
    return (uint32_t)(both & (~both + 1));
}

__host__ __device__ __forceinline__ uint32_t element_bytes(uint32_t dtype) {
    return dtype == kF32 ? 4 : 2;
}

// The integer type that is moved with one instruction.
template <int BYTES> struct Word;
#ifdef EMB_HOST_SIM
// A host compiler has to be told that these may stand for other types.
typedef uint4 __attribute__((may_alias)) Word16;
typedef uint2 __attribute__((may_alias)) Word8;
typedef uint32_t __attribute__((may_alias)) Word4;
typedef uint16_t __attribute__((may_alias)) Word2;
#else
typedef uint4 Word16;
typedef uint2 Word8;
typedef uint32_t Word4;
typedef uint16_t Word2;
#endif
template <> struct Word<16> { typedef Word16 type; };
template <> struct Word<8> { typedef Word8 type; };
template <> struct Word<4> { typedef Word4 type; };
template <> struct Word<2> { typedef Word2 type; };

// N elements that move together; N * sizeof(T) is 16, 8, 4 or 2.
template <typename T, int N> struct alignas(sizeof(T) * N) Vector {
    T v[N];
};

// Through the read-only path: nothing may write the memory while the kernel runs.
template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_constant(const T* from) {
    typedef typename Word<sizeof(T) * N>::type W;
    const W word = __ldg(reinterpret_cast<const W*>(from));
    Vector<T, N> out;
    memcpy(&out, &word, sizeof(out));
    return out;
}

template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* from) {
    typedef typename Word<sizeof(T) * N>::type W;
    const W word = *reinterpret_cast<const W*>(from);
    Vector<T, N> out;
    memcpy(&out, &word, sizeof(out));
    return out;
}

template <int N, typename T>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, N>& from) {
    typedef typename Word<sizeof(T) * N>::type W;
    W word;
    memcpy(&word, &from, sizeof(word));
    *reinterpret_cast<W*>(to) = word;
}

// N floats to an address of which `bytes` (16, 8 or 4) is the vector; N is 1 or even.
template <int N>
__device__ __forceinline__ void store_floats(float* to, const float (&from)[N], uint32_t bytes) {
    if (N >= 4 && bytes >= 16) {
#pragma unroll
        for (int i = 0; i + 4 <= N; i += 4) {
            store_vector<4>(to + i, Vector<float, 4>{{from[i], from[i + 1], from[i + 2], from[i + 3]}});
        }
    } else if (N >= 2 && bytes >= 8) {
#pragma unroll
        for (int i = 0; i + 2 <= N; i += 2) {
            store_vector<2>(to + i, Vector<float, 2>{{from[i], from[i + 1]}});
        }
    } else {
#pragma unroll
        for (int i = 0; i < N; ++i) to[i] = from[i];
    }
}

}  // namespace emb
