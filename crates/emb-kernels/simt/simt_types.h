// Qualifiers, vector types and dim3, as CUDA declares them: same sizes, same alignment.
#pragma once

#include <math.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

// A kernel is a plain function here. `__shared__` is left undefined on purpose: block-shared memory
// goes through EMB_SHARED_ARRAY and EMB_DYNAMIC_SHARED, which the shim can watch.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(BYTES) alignas(BYTES)

struct uchar2 {
    unsigned char x, y;
} __attribute__((aligned(2)));
struct uchar4 {
    unsigned char x, y, z, w;
} __attribute__((aligned(4)));
struct ushort2 {
    unsigned short x, y;
} __attribute__((aligned(4)));
struct ushort4 {
    unsigned short x, y, z, w;
} __attribute__((aligned(8)));
struct int2 {
    int x, y;
} __attribute__((aligned(8)));
struct int4 {
    int x, y, z, w;
} __attribute__((aligned(16)));
struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8)));
struct uint3 {
    unsigned x, y, z;
};
struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16)));
struct longlong2 {
    long long x, y;
} __attribute__((aligned(16)));
struct ulonglong2 {
    unsigned long long x, y;
} __attribute__((aligned(16)));
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float3 {
    float x, y, z;
};
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct double2 {
    double x, y;
} __attribute__((aligned(16)));

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

inline int2 make_int2(int x, int y) { return int2{x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return int4{x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return uint4{x, y, z, w};
}
inline ushort2 make_ushort2(unsigned short x, unsigned short y) { return ushort2{x, y}; }
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z,
                            unsigned short w) {
    return ushort4{x, y, z, w};
}
inline longlong2 make_longlong2(long long x, long long y) { return longlong2{x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) {
    return ulonglong2{x, y};
}
inline float2 make_float2(float x, float y) { return float2{x, y}; }
inline float3 make_float3(float x, float y, float z) { return float3{x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }
inline double2 make_double2(double x, double y) { return double2{x, y}; }

// Bits of one type read as another of the same size; what CUDA's __float_as_uint family does.
namespace simt {

template <typename To, typename From>
inline To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}

}  // namespace simt

inline unsigned __float_as_uint(float x) { return simt::bits_as<unsigned>(x); }
inline int __float_as_int(float x) { return simt::bits_as<int>(x); }
inline float __uint_as_float(unsigned x) { return simt::bits_as<float>(x); }
inline float __int_as_float(int x) { return simt::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return simt::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return simt::bits_as<double>(x); }
