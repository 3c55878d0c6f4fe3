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

// How lanes share a row: `lanes` neighbouring lanes of a warp, a vector of `vector` bytes each. A
// row of more than 32 vectors is cut into tiles of 32.
struct RowShape {
    uint32_t vector;  // bytes
    uint32_t lanes;   // 8, 16 or 32
    uint32_t tiles;
};

// Small rows get 8 lanes at least, by vectors of less than 16 bytes where that helps: a group of
// lanes reads 8 ids with one load, as many as it has rows in flight.
__host__ __device__ __forceinline__ RowShape row_shape(uint64_t address, uint32_t dim,
                                                       uint32_t dtype) {
    const uint32_t element = element_bytes(dtype), row_bytes = dim * element;
    uint32_t vector = vector_bytes(address, row_bytes);
    while (vector > element && row_bytes < 8 * vector) vector /= 2;
    const uint32_t vectors = row_bytes / vector;
    return RowShape{vector, vectors <= 8 ? 8u : vectors <= 16 ? 16u : 32u, (vectors + 31) / 32};
}

// The integer type that is moved with one instruction.
template <int BYTES> struct Word;
#ifdef EMB_HOST_SIM
// A host compiler has to be told that these may stand for other types.
struct __attribute__((may_alias, aligned(16))) Word16 {
    uint32_t x, y, z, w;
};
struct __attribute__((may_alias, aligned(8))) Word8 {
    uint32_t x, y;
};
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

// Element i of a word that holds some of T; i is a constant. A word takes fewer registers than its
// elements: two 16-bit numbers share one until they are used.
template <typename T, typename W> __device__ __forceinline__ float value_of(const W& word, int i) {
    uint32_t parts[(sizeof(W) + 3) / 4] = {};
    memcpy(parts, &word, sizeof(W));
    if (sizeof(T) == 4) {
        float x;
        memcpy(&x, &parts[i], sizeof(x));
        return x;
    }
    const uint16_t bits = (uint16_t)(parts[i / 2] >> (16 * (i % 2)));
    T x;
    memcpy(&x, &bits, sizeof(x));
    return load(x);
}
template <> __device__ __forceinline__ float value_of<__nv_bfloat16>(const Word16& word, int i) {
    uint32_t parts[4];
    memcpy(parts, &word, sizeof(parts));
    const uint32_t bits = i % 2 == 0 ? parts[i / 2] << 16 : parts[i / 2] & 0xffff0000u;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
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

// Calls `body.template run<T, N>()` for elements of a dtype in vectors of `vector` bytes.
template <typename Body>
__device__ __forceinline__ void by_vector(uint32_t dtype, uint32_t vector, Body& body) {
    if (dtype == kF32) {
        if (vector == 16) body.template run<float, 4>();
        else if (vector == 8) body.template run<float, 2>();
        else body.template run<float, 1>();
    } else if (dtype == kF16) {
        if (vector == 16) body.template run<__half, 8>();
        else if (vector == 8) body.template run<__half, 4>();
        else if (vector == 4) body.template run<__half, 2>();
        else body.template run<__half, 1>();
    } else {
        if (vector == 16) body.template run<__nv_bfloat16, 8>();
        else if (vector == 8) body.template run<__nv_bfloat16, 4>();
        else if (vector == 4) body.template run<__nv_bfloat16, 2>();
        else body.template run<__nv_bfloat16, 1>();
    }
}

// N floats to an address of which `bytes` (16, 8 or 4) is the vector; N is 1 or even.
template <int N>
__device__ __forceinline__ void store_floats(float* to, const float (&from)[N], uint32_t bytes) {
    if (N >= 4 && bytes >= 16) {
#pragma unroll
        for (int i = 0; i + 4 <= N; i += 4) {
            const Vector<float, 4> four{{from[i], from[i + 1], from[i + 2], from[i + 3]}};
            store_vector<4>(to + i, four);
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
