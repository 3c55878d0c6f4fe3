// What kernels are told about tables and features; twins of the `repr(C)` structs of
// `src/cuda/descriptors.rs`, which checks their sizes.
#pragma once

#include "portable.cuh"

namespace emb {

// One table of a group, in device memory.
struct Table {
    void* weights;          // [rows, dim] of dtype
    float* row_state;       // [rows, row_slots]
    float* element_state;   // [rows, element_slots, dim]
    const uint64_t* row_numbers;  // [rows] global row of each, or null: first_row + row * row_step
    uint64_t rows;
    uint64_t first_key;     // rows of the tables before this one; a row's key is first_key + row
    uint64_t first_row;     // of the window
    uint64_t row_step;      // of the window
    uint32_t dim;
    uint32_t dtype;         // Dtype
    uint32_t row_slots;
    uint32_t element_slots;
    uint32_t first_column;  // of the window
    uint32_t table_dim;     // of the window
    uint32_t stochastic;    // 1: 16-bit weights are rounded stochastically, 0: to nearest
    uint32_t rounding_key[2];
    uint32_t padding;
};
static_assert(sizeof(Table) == 104, "as in descriptors.rs");

enum Pooling : uint32_t { kSum = 0, kMean = 1, kNone = 2 };

// One feature of a batch.
struct Feature {
    uint32_t table;
    uint32_t pooling;  // Pooling
    uint32_t column;   // first column in the pooled output
    uint32_t dim;
    // Of its table, copied here so that a lookup reads one descriptor.
    const void* weights;
    uint64_t rows;
    uint64_t first_key;
    uint32_t dtype;
    uint32_t sequence;  // number of this feature among those without pooling
};
static_assert(sizeof(Feature) == 48, "as in descriptors.rs");

// What one warp of a pooled lookup does for every block of samples: see lookup.cu.
struct Slot {
    uint32_t feature;
    uint16_t part;   // which of the warps of this feature
    uint8_t vector;  // bytes of a lane's load
    uint8_t lanes;   // that share a row
};
static_assert(sizeof(Slot) == 8, "as in src/cuda/pool.rs");

// Last of the features first..end whose values begin at `position` or before it.
__device__ __forceinline__ uint32_t feature_at(const uint64_t* offsets, uint64_t batch,
                                               uint32_t first, uint32_t end, uint64_t position) {
    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;
        if (offsets[middle * batch] <= position) first = middle;
        else end = middle;
    }
    return first;
}

__device__ __forceinline__ uint64_t global_row(const Table& table, uint64_t row) {
    return table.row_numbers ? table.row_numbers[row] : table.first_row + row * table.row_step;
}

}  // namespace emb
