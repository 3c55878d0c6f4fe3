// Matrices with padded rows for the tests of the dense kernels.
#pragma once

#include "check.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

// A row-major matrix of random numbers. Its rows are `pad` floats apart, and the first begins
// `offset` floats after an aligned address. What lies between rows is not a number, and nothing lies
// after the last row, so that a kernel that reads there is found out.
class Matrix {
  public:
    Matrix(uint64_t rows, uint64_t cols, uint64_t pad, uint64_t offset, uint64_t seed)
        : rows(rows),
          cols(cols),
          stride(cols + pad),
          offset(offset),
          data(new check::Buffer<float>(offset + (rows == 0 ? 0 : (rows - 1) * stride + cols), NAN)) {
        check::Random random(seed);
        for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < cols; ++j) (*this)(i, j) = random.uniform();
        }
    }
    Matrix(const Matrix& other)
        : rows(other.rows),
          cols(other.cols),
          stride(other.stride),
          offset(other.offset),
          data(new check::Buffer<float>(other.data->values())) {}

    float& operator()(uint64_t i, uint64_t j) { return (*data)[offset + i * stride + j]; }
    float operator()(uint64_t i, uint64_t j) const { return (*data)[offset + i * stride + j]; }
    operator float*() { return data->data() + offset; }
    // Everything, with what lies between rows.
    const check::Buffer<float>& all() const { return *data; }

    const uint64_t rows, cols, stride, offset;

  private:
    std::unique_ptr<check::Buffer<float>> data;
};

// Sums of columns in the order that column_sums.cuh promises.
inline std::vector<float> column_sums(const Matrix& x) {
    std::vector<float> totals(x.cols, 0.0f);
    for (uint64_t top = 0; top < x.rows; top += 256) {
        std::vector<float> sums(x.cols, 0.0f);
        for (uint64_t i = top; i < x.rows && i < top + 256; ++i) {
            for (uint64_t j = 0; j < x.cols; ++j) sums[j] += x(i, j);
        }
        for (uint64_t j = 0; j < x.cols; ++j) totals[j] += sums[j];
    }
    return totals;
}

// Bytes that a kernel's launches have touched since the last reset, each once a launch; in builds
// that count.
struct Touched {
    uint64_t reads = 0, writes = 0;
    explicit Touched(const char* kernel) { simt_unique_counters(kernel, &reads, &writes); }
};

// Runs `launches` and tells what `kernel` has touched.
template <typename Launches>
Touched touched(const char* kernel, Launches launches) {
    simt_counters_reset();
    simt_count_unique(1);
    launches();
    const Touched all(kernel);
    simt_count_unique(0);
    return all;
}

inline uint64_t chunks_of(uint64_t rows) { return (rows + 255) / 256; }

// Launches of the element-wise kernels: few threads that walk, and more than there are elements.
struct Launch {
    dim3 grid, block;
};
static const Launch kLaunches[] = {{dim3(1, 1), dim3(32, 1)}, {dim3(3, 2), dim3(16, 4)}};
