// The shim's plain C interface as this driver uses it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
int simt_launch(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, size_t shared, void** parameters);
int simt_param_sizes(const char* name, size_t* out, int capacity);
#define SIMT_WEAK __attribute__((weak))
SIMT_WEAK int simt_allow_shared(const char* name, size_t bytes);
SIMT_WEAK const char* simt_error();
SIMT_WEAK void* simt_load(const char* path);
SIMT_WEAK void simt_unload(void* object);
SIMT_WEAK int simt_counts();
SIMT_WEAK void simt_count_region(const void* start, size_t bytes);
SIMT_WEAK void simt_uncount_region(const void* start);
SIMT_WEAK void simt_counters(const char* name, uint64_t* reads, uint64_t* writes);
}
