// Rows of a table by number, to and from a buffer of floats.
//
// A row has parts: its weights, then each slot of its state. In the buffer rows lie whole, one
// after the other (`elements` of them a row), or each part of all rows on its own (`elements` 0).
//
// emb_read_rows, emb_write_rows: a warp a row; grid any, block 256.
// Bytes moved: dim * element bytes + 4 * state on the side of the table and 4 an element on that of
// the buffer, 8 a row for its number, 32 a part of descriptors; every one once. Four elements a
// lane are in flight. 40 and 32 registers on sm_90.
#include "tables.cuh"
#include "vector.cuh"

namespace emb {

// Weights or one slot of a table; twin of `Part` of src/cuda/table.rs.
struct RowPart {
    void* memory;     // of row 0
    uint64_t stride;  // elements between rows
    uint32_t width;   // elements of a row
    uint32_t dtype;   // Dtype
    uint32_t column;  // of the first element in a whole row
    uint32_t padding;
};
static_assert(sizeof(RowPart) == 32, "as in src/cuda/table.rs");

// First element of a part of row k in the buffer.
__host__ __device__ __forceinline__ uint64_t place_of_part(const RowPart& part, uint64_t k,
                                                           uint64_t rows, uint32_t elements) {
    return elements ? element_at(k, elements, part.column)
                    : element_at(rows, part.column, 0) + element_at(k, part.width, 0);
}

template <typename T>
__device__ __forceinline__ void read_part(const RowPart& part, uint64_t row, float* to) {
    constexpr uint32_t kInFlight = 4;
    const T* from = static_cast<const T*>(part.memory) + element_at(row, part.stride, 0);
    for (uint32_t c = threadIdx.x % kWarp; c < part.width; c += kInFlight * kWarp) {
        T value[kInFlight];
#pragma unroll
        for (uint32_t u = 0; u < kInFlight; ++u) {
            if (c + u * kWarp < part.width) value[u] = from[c + u * kWarp];
        }
#pragma unroll
        for (uint32_t u = 0; u < kInFlight; ++u) {
            if (c + u * kWarp < part.width) to[c + u * kWarp] = load(value[u]);
        }
    }
}

template <typename T>
__device__ __forceinline__ void write_part(const RowPart& part, uint64_t row, const float* from) {
    constexpr uint32_t kInFlight = 4;
    T* to = static_cast<T*>(part.memory) + element_at(row, part.stride, 0);
    for (uint32_t c = threadIdx.x % kWarp; c < part.width; c += kInFlight * kWarp) {
        float value[kInFlight];
#pragma unroll
        for (uint32_t u = 0; u < kInFlight; ++u) {
            if (c + u * kWarp < part.width) value[u] = from[c + u * kWarp];
        }
#pragma unroll
        for (uint32_t u = 0; u < kInFlight; ++u) {
            if (c + u * kWarp < part.width) to[c + u * kWarp] = nearest<T>(value[u]);
        }
    }
}

// Where the search for a row begins in a table of 2^n places (SplitMix64's finaliser).
__host__ __device__ __forceinline__ uint64_t first_place(uint64_t row, uint64_t mask) {
    row = (row ^ (row >> 30)) * 0xbf58476d1ce4e5b9ull;
    row = (row ^ (row >> 27)) * 0x94d049bb133111ebull;
    return (row ^ (row >> 31)) & mask;
}

}  // namespace emb

// `numbers` are the rows, or null for first, first + 1, ...
extern "C" __global__ void __launch_bounds__(256) emb_read_rows(
    const emb::RowPart* parts, uint32_t count, const uint64_t* numbers, uint64_t first,
    uint64_t rows, uint32_t elements, float* out) {
    const uint64_t warps = (uint64_t)gridDim.x * blockDim.x / emb::kWarp;
    for (uint64_t k = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / emb::kWarp; k < rows;
         k += warps) {
        const uint64_t row = numbers ? numbers[k] : first + k;
        for (uint32_t p = 0; p < count; ++p) {
            const emb::RowPart part = parts[p];
            float* to = out + emb::place_of_part(part, k, rows, elements);
            if (part.dtype == emb::kF32) emb::read_part<float>(part, row, to);
            else if (part.dtype == emb::kF16) emb::read_part<__half>(part, row, to);
            else emb::read_part<__nv_bfloat16>(part, row, to);
        }
    }
}
EMB_KERNEL(emb_read_rows)

// Which of equal rows is the last: an open table of at least 2 * rows places, a power of two, all
// zero before. keys[i] is a row + 1, last[i] the largest position + 1 of it. The places depend on
// the order of threads; which position is the last does not.
//
// Grid any, block 256, a thread a row. Reads 8 bytes a row; changes 16 bytes of the table for each
// row that differs from the others.
extern "C" __global__ void __launch_bounds__(256) emb_find_last_rows(
    const uint64_t* numbers, uint64_t rows, unsigned long long* keys, unsigned long long* last,
    uint64_t mask) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t k = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; k < rows; k += threads) {
        const unsigned long long key = numbers[k] + 1;
        uint64_t place = emb::first_place(numbers[k], mask);
        for (;;) {
            const unsigned long long found = atomicCAS(&keys[place], 0ull, key);
            if (found == 0 || found == key) break;
            place = (place + 1) & mask;
        }
        atomicMax(&last[place], (unsigned long long)k + 1);
    }
}
EMB_KERNEL(emb_find_last_rows)

// Of a row that is listed twice, the last stays, and the others are neither read nor written:
// `keys` and `last` are those of emb_find_last_rows, 16 bytes a row that differs from the others,
// or null where all do.
extern "C" __global__ void __launch_bounds__(256) emb_write_rows(
    const emb::RowPart* parts, uint32_t count, const uint64_t* numbers, uint64_t first,
    uint64_t rows, uint32_t elements, const unsigned long long* keys,
    const unsigned long long* last, uint64_t mask, const float* from) {
    const uint64_t warps = (uint64_t)gridDim.x * blockDim.x / emb::kWarp;
    for (uint64_t k = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / emb::kWarp; k < rows;
         k += warps) {
        const uint64_t row = numbers ? numbers[k] : first + k;
        if (keys) {
            uint64_t place = emb::first_place(row, mask);
            while (keys[place] != row + 1) place = (place + 1) & mask;
            if (last[place] != k + 1) continue;
        }
        for (uint32_t p = 0; p < count; ++p) {
            const emb::RowPart part = parts[p];
            const float* own = from + emb::place_of_part(part, k, rows, elements);
            if (part.dtype == emb::kF32) emb::write_part<float>(part, row, own);
            else if (part.dtype == emb::kF16) emb::write_part<__half>(part, row, own);
            else emb::write_part<__nv_bfloat16>(part, row, own);
        }
    }
}
EMB_KERNEL(emb_write_rows)
