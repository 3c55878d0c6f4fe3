// Initial weights and state of rows of a table.
//
// emb_init_weights: a thread makes the four columns of one counter of one row; grid any, block 256.
// Bytes written: dim * element bytes a row, once; read: 8 a row where rows have numbers of their
// own, which the other threads of the row have from cache. About 120 integer instructions for four
// columns, so it is bound by arithmetic. 32 registers on sm_90.
#include "philox.cuh"
#include "tables.cuh"
#include "vector.cuh"

namespace emb {

// Columns 4 * block .. 4 * block + 3 of the whole table, as far as the row has them.
template <typename T>
__device__ __forceinline__ void store_initial(T* row, const float (&value)[4], uint32_t block,
                                              uint32_t first_column, uint32_t dim) {
    const int64_t column = (int64_t)block * 4 - first_column;
    if (column >= 0 && column + 4 <= dim && column % 4 == 0 && dim % 4 == 0) {
        const Vector<T, 4> four{{nearest<T>(value[0]), nearest<T>(value[1]), nearest<T>(value[2]),
                                 nearest<T>(value[3])}};
        store_vector(row + column, four);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (column + i >= 0 && column + i < dim) row[column + i] = nearest<T>(value[i]);
    }
}

}  // namespace emb

// Rows first .. first + rows. `numbers` are their global rows, or null for those of the window.
extern "C" __global__ void __launch_bounds__(256) emb_init_weights(
    const emb::Table* tables, uint32_t table_number, const uint64_t* numbers, uint64_t first,
    uint64_t rows, uint32_t key_low, uint32_t key_high, float low, float span, float last) {
    const emb::Table table = tables[table_number];
    const uint32_t from = table.first_column / 4;
    const uint32_t blocks = (table.first_column + table.dim - 1) / 4 - from + 1;
    const emb::Key key{key_low, key_high};
    const emb::Uniform range{low, span, last};
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    // A division a thread and none a row.
    uint64_t k = thread / blocks;
    uint32_t block = (uint32_t)(thread % blocks);
    const uint64_t row_step = threads / blocks;
    const uint32_t block_step = (uint32_t)(threads % blocks);
    while (k < rows) {
        const uint64_t row = first + k;
        const uint64_t global =
            numbers ? numbers[k] : table.first_row + row * table.row_step;
        float value[4];
        emb::initial_weights(key, range, global, from + block, value);
        const uint64_t at = emb::element_at(row, table.dim, 0);
        if (table.dtype == emb::kF32) {
            emb::store_initial((float*)table.weights + at, value, from + block, table.first_column,
                               table.dim);
        } else if (table.dtype == emb::kF16) {
            emb::store_initial((__half*)table.weights + at, value, from + block,
                               table.first_column, table.dim);
        } else {
            emb::store_initial((__nv_bfloat16*)table.weights + at, value, from + block,
                               table.first_column, table.dim);
        }
        k += row_step;
        block += block_step;
        if (block >= blocks) {
            block -= blocks;
            ++k;
        }
    }
}
EMB_KERNEL(emb_init_weights)

// `width` elements of every row of a slot, `stride` apart, become `value`.
//
// Grid any, block 256, a thread an element. Writes 4 bytes an element, once.
extern "C" __global__ void __launch_bounds__(256) emb_init_state(float* state, uint64_t rows,
                                                                 uint32_t width, uint64_t stride,
                                                                 float value) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t row = thread / width;
    uint32_t column = (uint32_t)(thread % width);
    const uint64_t row_step = threads / width;
    const uint32_t column_step = (uint32_t)(threads % width);
    while (row < rows) {
        state[emb::element_at(row, stride, column)] = value;
        row += row_step;
        column += column_step;
        if (column >= width) {
            column -= width;
            ++row;
        }
    }
}
EMB_KERNEL(emb_init_state)
