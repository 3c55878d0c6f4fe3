// Matrices with padded rows for the tests of the dense kernels, and how they are compared.
#pragma once

#include "check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

// A row-major matrix; its rows are `pad` floats apart, and begin `offset` floats after 16 bytes.
struct Matrix {
    uint64_t rows, cols, stride, offset;
    std::vector<float> data;

    Matrix(uint64_t rows, uint64_t cols, uint64_t pad, uint64_t offset, uint64_t salt)
        : rows(rows), cols(cols), stride(cols + pad), offset(offset) {
        // To the last element and no further, so that a sanitizer sees reads past it.
        const uint64_t extent = rows * cols == 0 ? 0 : (rows - 1) * stride + cols;
        data.resize(offset + extent);
        uint64_t state = salt * 0x9e3779b97f4a7c15ull + 1;
        for (float& x : data) x = mixed(&state);
    }

    float* begin() { return data.data() + offset; }
    float& at(uint64_t row, uint64_t col) { return begin()[row * stride + col]; }

    // Values in -1..1, mixed by SplitMix64 (Steele, Lea and Flood 2014).
    static float mixed(uint64_t* state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        z ^= z >> 31;
        return static_cast<float>(z >> 40) / 8388608.0f - 1.0f;
    }
};

// Checks that two arrays have the same bits; two NaN are the same.
template <typename T>
void expect_same(const std::string& what, const std::vector<T>& got, const std::vector<T>& want) {
    CHECK_EQ(got.size(), want.size(), what);
    for (size_t k = 0; k < got.size() && k < want.size(); ++k) {
        const bool same = memcmp(&got[k], &want[k], sizeof(T)) == 0 ||
                          (got[k] != got[k] && want[k] != want[k]);
        if (!same) {
            CHECK(false, what + ": element " + std::to_string(k) + " is " + std::to_string(got[k]) +
                             ", not " + std::to_string(want[k]));
            return;
        }
    }
}

// Launches of one kernel that must not differ: how many blocks, and how many threads of a block.
struct Launch {
    unsigned grid_x, grid_y, block_x, block_y;
};
