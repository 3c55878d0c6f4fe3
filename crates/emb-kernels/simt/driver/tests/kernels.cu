// Kernels of the driver's tests.
#include "portable.cuh"

// y[i] = x[i] + add. Grid: elements / 64, block: 64.
extern "C" __global__ void test_add(float* y, const float* x, uint32_t count, float add) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = x[i] + add;
}
EMB_KERNEL(test_add)

// *y = *list[0]. Grid: 1, block: 1.
extern "C" __global__ void test_follow(float* y, const float* const* list) { *y = *list[0]; }
EMB_KERNEL(test_follow)
