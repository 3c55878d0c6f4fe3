// One source for three compilers: nvcc, its sibling at run time (NVRTC), and a C++ compiler over the
// SIMT host shim (EMB_HOST_SIM).
//
// Kernels keep to what all have: no inline PTX, no cooperative groups, no library of templates.
// Products and sums are not contracted (-fmad=false, -ffp-contract=off): a kernel rounds as the
// CPU backend does, and writes fmaf where that does.
#pragma once

#ifdef __CUDACC_RTC__
#include "rtc.cuh"
#else
#include <cstdint>
#endif

#ifdef EMB_HOST_SIM
#include "simt.h"
// Block-shared array; the shim puts it on the heap, where reads past its end are caught.
//   EMB_SHARED_ARRAY(float, tile, [32][33]);
#define EMB_KERNEL(NAME) SIMT_REGISTER(NAME)
#else
#ifndef __CUDACC_RTC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#define EMB_SHARED_ARRAY(T, NAME, ...) __shared__ T NAME __VA_ARGS__
#define EMB_DYNAMIC_SHARED(T, NAME)                                  \
    extern __shared__ __align__(16) unsigned char emb_dynamic_bytes[]; \
    T* const NAME = reinterpret_cast<T*>(emb_dynamic_bytes)
#define EMB_KERNEL(NAME)
#endif

namespace emb {

constexpr int kWarp = 32;
constexpr unsigned kFullWarp = 0xffffffffu;

// The storage types of weights, all computed with as float.
enum Dtype : uint32_t { kF32 = 0, kF16 = 1, kBf16 = 2 };

__device__ __forceinline__ float load(float x) { return x; }
__device__ __forceinline__ float load(__half x) { return __half2float(x); }
__device__ __forceinline__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }

// To the nearest, ties to even.
template <typename T> __device__ __forceinline__ T nearest(float x);
template <> __device__ __forceinline__ float nearest<float>(float x) { return x; }
template <> __device__ __forceinline__ __half nearest<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 nearest<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

}  // namespace emb
