// What a program calls: launches by name, sizes of parameters, byte counters. Plain C, so that the
// fake driver and other languages can; results are those of the CUDA driver (0 is success).
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

constexpr int kSimtSuccess = 0;
constexpr int kSimtInvalidValue = 1;  // CUDA_ERROR_INVALID_VALUE: a limit of the GPU is passed
constexpr int kSimtNotFound = 500;    // CUDA_ERROR_NOT_FOUND: no kernel of that name

// Runs a kernel to its end. `parameters` holds one pointer a parameter, as for cuLaunchKernel.
// A defect (deadlock, divergence, a lane that is not in its own mask) is printed and aborts.
int simt_launch(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, size_t shared,
                void** parameters);

// Number of parameters, the first `capacity` sizes in `out`; -1 where there is no such kernel.
int simt_param_sizes(const char* name, size_t* out, int capacity);

// Lets launches of a kernel ask for up to `bytes` of dynamic shared memory (at most 227 KiB).
int simt_allow_shared(const char* name, size_t bytes);

// Why this thread's last call was refused; empty at first.
const char* simt_error();

// Loads a shared object whose kernels register themselves and may use this runtime; null with
// simt_error() set when it does not load. A newer kernel hides an older one of the same name,
// until simt_unload.
void* simt_load(const char* path);
void simt_unload(void* object);

// 1 in a build that counts bytes (SIMT_COUNT), else 0; the calls below do nothing then.
int simt_counts();
// Accesses of kernels to these bytes count from now on; they may not overlap others.
void simt_count_region(const void* start, size_t bytes);
void simt_uncount_region(const void* start);
// Bytes that launches of a kernel have read and written; also of all kernels in one region.
void simt_counters(const char* name, uint64_t* reads, uint64_t* writes);
void simt_region_counters(const void* start, uint64_t* reads, uint64_t* writes);
// The same, but what one launch touches repeatedly counts once; counted after simt_count_unique(1).
void simt_unique_counters(const char* name, uint64_t* reads, uint64_t* writes);
void simt_count_unique(int on);
void simt_counters_reset();
}
