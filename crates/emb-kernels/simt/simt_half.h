// __half and __nv_bfloat16: storage, and conversions that round to the nearest, ties to even,
// with the bits that CUDA's own give. Arithmetic is left to float, as the kernels do it.
#pragma once

#include "simt_types.h"

struct __half {
    uint16_t bits;
};
struct __nv_bfloat16 {
    uint16_t bits;
};
struct __half2 {
    __half x, y;
} __attribute__((aligned(4)));
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
} __attribute__((aligned(4)));
using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

namespace simt {

constexpr uint32_t kInfinity = 0x7f800000u;   // of a float
constexpr uint16_t kNan16 = 0x7fffu;          // the one NaN that both 16-bit conversions give
constexpr uint32_t kHalfOverflow = 0x477ff000u;  // 65520: from here on a half is infinite
constexpr uint32_t kHalfNormal = 0x38800000u;    // 2^-14, the smallest normal half
constexpr uint32_t kBiasStep = 112u << 23;       // 127 - 15, exponents of float and half

}  // namespace simt

inline float __half2float(__half h) {
    const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
    const uint32_t magnitude = h.bits & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return __uint_as_float(sign | simt::kInfinity | ((magnitude & 0x3ffu) << 13));
    }
    if (magnitude < 0x400u) {  // subnormal: a multiple of 2^-24, exact as a float
        const float value = static_cast<float>(magnitude) * 0x1p-24f;
        return __uint_as_float(sign | __float_as_uint(value));
    }
    return __uint_as_float(sign | ((magnitude << 13) + simt::kBiasStep));
}

inline __half __float2half_rn(float x) {
    const uint32_t all = __float_as_uint(x);
    const uint32_t magnitude = all & 0x7fffffffu;
    const auto sign = static_cast<uint16_t>((all >> 16) & 0x8000u);
    if (magnitude > simt::kInfinity) return __half{simt::kNan16};
    if (magnitude >= simt::kHalfOverflow) return __half{static_cast<uint16_t>(sign | 0x7c00u)};
    if (magnitude < simt::kHalfNormal) {
        // One unit in the last place of 0.5 is 2^-24, that of a subnormal half: the sum rounds to it.
        const float sum = __uint_as_float(magnitude) + 0.5f;
        return __half{static_cast<uint16_t>(sign | (__float_as_uint(sum) - 0x3f000000u))};
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    const uint32_t rounded = (magnitude - simt::kBiasStep + 0xfffu + odd) >> 13;
    return __half{static_cast<uint16_t>(sign | rounded)};
}
inline __half __float2half(float x) { return __float2half_rn(x); }

inline float __bfloat162float(__nv_bfloat16 b) {
    return __uint_as_float(static_cast<uint32_t>(b.bits) << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    const uint32_t all = __float_as_uint(x);
    if ((all & 0x7fffffffu) > simt::kInfinity) return __nv_bfloat16{simt::kNan16};
    const uint32_t odd = (all >> 16) & 1u;
    return __nv_bfloat16{static_cast<uint16_t>((all + 0x7fffu + odd) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }

inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline __half __ushort_as_half(unsigned short bits) { return __half{bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16{bits}; }

inline float2 __half22float2(__half2 h) {
    return make_float2(__half2float(h.x), __half2float(h.y));
}
inline float2 __bfloat1622float2(__nv_bfloat162 b) {
    return make_float2(__bfloat162float(b.x), __bfloat162float(b.y));
}
inline __half2 __floats2half2_rn(float x, float y) {
    return __half2{__float2half_rn(x), __float2half_rn(y)};
}
inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return __nv_bfloat162{__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
