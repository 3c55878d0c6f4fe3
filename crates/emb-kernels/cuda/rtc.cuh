// What the run-time compiler has no headers for: integers by size, infinity, 16-bit numbers.
//
// A program that compiles a rule then needs the compiler's library alone, and no toolkit. The
// conversions are the instructions that NVIDIA's headers use; only this file has PTX, and no host
// compiler sees it.
#pragma once

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned long long uintptr_t;

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

struct __half {
    uint16_t bits;
};

struct __nv_bfloat16 {
    uint16_t bits;
};

__device__ __forceinline__ float __half2float(__half x) {
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(x.bits));
    return out;
}

__device__ __forceinline__ __half __float2half_rn(float x) {
    __half out;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
    return out;
}

__device__ __forceinline__ float __bfloat162float(__nv_bfloat16 x) {
    return __uint_as_float(static_cast<uint32_t>(x.bits) << 16);
}

__device__ __forceinline__ __nv_bfloat16 __float2bfloat16_rn(float x) {
    __nv_bfloat16 out;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#else
    // To the nearest, ties to even; NaN as the instruction gives it.
    const uint32_t bits = __float_as_uint(x);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    out.bits = nan ? 0x7fff : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
    return out;
}
