// One matrix product of cuBLASLt: what it is, and doing it in plain loops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace driver::blas {

// Of cudaDataType.
enum Type : int { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14 };

// Of cublasLtEpilogue_t, a set of bits.
enum Epilogue : uint32_t {
    kDefault = 1,
    kRelu = 2,
    kBias = 4,
    kGradient = 8,  // of the activation, with the mask that kAux wrote: DRELU is 128 + 8
    kBiasGradient = 16,
    kGelu = 32,
    kAux = 128,
    kBiasGradientA = 256,
    kBiasGradientB = 512,
};

// Of cublasComputeType_t: what is done to f32 inputs before they are multiplied.
enum Compute : int {
    kExact = 68,
    kExactPedantic = 69,
    kFastF16 = 74,
    kFastBf16 = 75,
    kFastTf32 = 77
};

struct Layout {
    int type = kF32;
    int order = 0;  // 0 by columns, 1 by rows
    uint64_t rows = 0, cols = 0;
    int64_t leading = 0;
    int32_t batches = 1;
    int64_t batch_stride = 0;
};

struct Matrix {
    uint64_t address = 0;
    Layout layout;
};

// D = epilogue(alpha op(A) op(B) + beta C), every sum in f64 and rounded once to the type of D.
struct Product {
    Matrix a, b, c, d;
    bool transpose_a = false, transpose_b = false;
    double alpha = 1, beta = 0;
    int compute = kExact;
    uint32_t epilogue = kDefault;
    uint64_t bias = 0;  // read, or written where the epilogue gives a gradient
    int bias_type = kF32;
    int64_t bias_batch_stride = 0;
    uint64_t aux = 0;                               // one bit an element, by columns
    int64_t aux_leading = 0, aux_batch_stride = 0;  // in bits
};

size_t type_bytes(int type);
// Bytes from the first element to behind the last, over all batches.
size_t matrix_bytes(const Layout& layout);
void multiply(const Product& product);

}  // namespace driver::blas
