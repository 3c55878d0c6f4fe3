// Integer and floating-point intrinsics. Those of float round once, as the `_rn` forms of CUDA do;
// there are no approximate ones (`__expf`, `__fdividef`): a kernel that wants one does not build.
#pragma once

#include "simt_types.h"

#include <cmath>
#include <cstdlib>

constexpr int warpSize = 32;

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= ((x >> bit) & 1u) << (31 - bit);
    return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
    return static_cast<unsigned>((static_cast<uint64_t>(x) * y) >> 32);
}
inline int __mulhi(int x, int y) {
    return static_cast<int>((static_cast<int64_t>(x) * y) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}

inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
// CUDA's rsqrtf may be 2 units in the last place off; this one is the rounded root, then divided.
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }

// Loads and stores with cache hints: the hint changes no value.
template <typename T> inline T __ldg(const T* from) { return *from; }
template <typename T> inline T __ldcg(const T* from) { return *from; }
template <typename T> inline T __ldcs(const T* from) { return *from; }
template <typename T> inline void __stcg(T* to, T value) { *to = value; }
template <typename T> inline void __stcs(T* to, T value) { *to = value; }

// The pairs of types that CUDA's min and max take.
#define SIMT_MIN_MAX(RESULT, LEFT, RIGHT)                                    \
    inline RESULT min(LEFT x, RIGHT y) {                                     \
        return static_cast<RESULT>(x) < static_cast<RESULT>(y) ? x : y;      \
    }                                                                        \
    inline RESULT max(LEFT x, RIGHT y) {                                     \
        return static_cast<RESULT>(x) > static_cast<RESULT>(y) ? x : y;      \
    }
SIMT_MIN_MAX(int, int, int)
SIMT_MIN_MAX(unsigned, unsigned, unsigned)
SIMT_MIN_MAX(unsigned, int, unsigned)
SIMT_MIN_MAX(unsigned, unsigned, int)
SIMT_MIN_MAX(long, long, long)
SIMT_MIN_MAX(unsigned long, unsigned long, unsigned long)
SIMT_MIN_MAX(long long, long long, long long)
SIMT_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef SIMT_MIN_MAX
// Of a number and a NaN, the number: as fminf and fmaxf.
inline float min(float x, float y) { return std::fmin(x, y); }
inline float max(float x, float y) { return std::fmax(x, y); }
inline double min(double x, double y) { return std::fmin(x, y); }
inline double max(double x, double y) { return std::fmax(x, y); }
