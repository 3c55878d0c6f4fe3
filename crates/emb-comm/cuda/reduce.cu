// Reductions of vectors in device memory, in the order of the ranks: what `Local` runs over a
// device. The twin of `reduce` in src/space.rs, bit for bit.
#include "portable.cuh"

namespace emb {
namespace reduce {

// Vectors of one launch. For more, the next launch begins with the running result.
constexpr uint32_t kSources = 64;

// Where the vectors are, in rank order; null stands for the values that `out` has on entry.
struct Sources {
    const void* at[kSources];
};
static_assert(sizeof(Sources) == 512, "as in the struct of the host");

template <typename T> struct Sum {
    // Integers of the host wrap around, as unsigned ones do here.
    static __device__ __forceinline__ T of(T a, T b) { return a + b; }
};

// The sum as float has more than twice the digits: rounded again, it is the nearest.
template <> struct Sum<__half> {
    static __device__ __forceinline__ __half of(__half a, __half b) { return nearest<__half>(load(a) + load(b)); }
};
template <> struct Sum<__nv_bfloat16> {
    static __device__ __forceinline__ __nv_bfloat16 of(__nv_bfloat16 a, __nv_bfloat16 b) {
        return nearest<__nv_bfloat16>(load(a) + load(b));
    }
};

// As floats, 16-bit ones compare alike.
__device__ __forceinline__ double comparable(double x) { return x; }
__device__ __forceinline__ uint64_t comparable(uint64_t x) { return x; }
__device__ __forceinline__ float comparable(float x) { return x; }
__device__ __forceinline__ float comparable(__half x) { return load(x); }
__device__ __forceinline__ float comparable(__nv_bfloat16 x) { return load(x); }

template <typename T> struct Max {
    // A comparison with not-a-number is false: `b` is taken, unless `a` is it.
    static __device__ __forceinline__ T of(T a, T b) {
        const auto x = comparable(a), y = comparable(b);
        return x > y || x != x ? a : b;
    }
};

// 16 bytes of elements.
template <typename T> struct alignas(16) Piece {
    static constexpr int kLen = 16 / sizeof(T);
    T at[kLen];
};

template <typename T> struct One {
    static constexpr int kLen = 1;
    T at[1];
};

// Reduces one piece; four reads are in flight before the first is added.
template <template <typename> class How, typename T, typename P>
__device__ __forceinline__ void piece(const Sources& sources, uint32_t count, T* out, uint64_t first) {
    constexpr int kAhead = 4;
    P sum = {};
    for (uint32_t rank = 0; rank < count; rank += kAhead) {
        P read[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            if (rank + k < count) {
                const void* source = sources.at[rank + k];
                const T* from = source ? static_cast<const T*>(source) : out;
                read[k] = *reinterpret_cast<const P*>(from + first);
            }
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
            if (rank + k < count) {
#pragma unroll
                for (int e = 0; e < P::kLen; ++e) {
                    const bool begins = rank + k == 0;
                    sum.at[e] = begins ? read[k].at[e] : How<T>::of(sum.at[e], read[k].at[e]);
                }
            }
        }
    }
    *reinterpret_cast<P*>(out + first) = sum;
}

template <template <typename> class How, typename T>
__device__ __forceinline__ void all(const Sources& sources, uint32_t count, T* out, uint64_t len) {
    uintptr_t places = reinterpret_cast<uintptr_t>(out);
    for (uint32_t rank = 0; rank < count; ++rank) {
        places |= reinterpret_cast<uintptr_t>(sources.at[rank]);
    }
    const uint64_t pieces = places % 16 == 0 ? len / Piece<T>::kLen : 0;
    const uint64_t units = pieces + (len - pieces * Piece<T>::kLen);
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t k = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; k < units; k += step) {
        if (k < pieces) {
            piece<How, T, Piece<T>>(sources, count, out, k * Piece<T>::kLen);
        } else {
            piece<How, T, One<T>>(sources, count, out, pieces * Piece<T>::kLen + (k - pieces));
        }
    }
}

}  // namespace reduce
}  // namespace emb

#define EMB_REDUCE(NAME, HOW, TYPE)                                                               \
    extern "C" __global__ void __launch_bounds__(256)                                            \
        emb_reduce_##NAME(emb::reduce::Sources sources, uint32_t count, TYPE* out, uint64_t len) { \
        emb::reduce::all<emb::reduce::HOW, TYPE>(sources, count, out, len);                      \
    }                                                                                            \
    EMB_KERNEL(emb_reduce_##NAME)

// out[k] = sources[0][k] + sources[1][k] + .., or the largest of them; not-a-number if one is.
//
// Grid and block: any, 256 threads and enough blocks to fill the device. For each element reads
// `count` and writes one: 4 * (count + 1) bytes of f32, twice that of f64 and u64, half of f16 and bf16. 16 bytes of 4
// vectors in flight a thread where all of them lie on 16 bytes, else one element of 4. 36 to 40
// registers.
EMB_REDUCE(sum_f32, Sum, float)
EMB_REDUCE(sum_f64, Sum, double)
EMB_REDUCE(sum_u64, Sum, uint64_t)
EMB_REDUCE(sum_f16, Sum, __half)
EMB_REDUCE(sum_bf16, Sum, __nv_bfloat16)
EMB_REDUCE(max_f16, Max, __half)
EMB_REDUCE(max_bf16, Max, __nv_bfloat16)
EMB_REDUCE(max_f32, Max, float)
EMB_REDUCE(max_f64, Max, double)
EMB_REDUCE(max_u64, Max, uint64_t)
