// Matrix products in plain loops.
#include "matmul.h"

#include <vector>

#include "numbers.h"

namespace driver::blas {
namespace {

double load(uint64_t address, int type, size_t index) {
    switch (type) {
        case kF64: return reinterpret_cast<const double*>(address)[index];
        case kF16: return f16_to_f32(reinterpret_cast<const uint16_t*>(address)[index]);
        case kBf16: return bf16_to_f32(reinterpret_cast<const uint16_t*>(address)[index]);
        default: return reinterpret_cast<const float*>(address)[index];
    }
}

void store(uint64_t address, int type, size_t index, double value) {
    switch (type) {
        case kF64: reinterpret_cast<double*>(address)[index] = value; break;
        case kF16:
            reinterpret_cast<uint16_t*>(address)[index] = f32_to_f16(static_cast<float>(value));
            break;
        case kBf16:
            reinterpret_cast<uint16_t*>(address)[index] = f32_to_bf16(static_cast<float>(value));
            break;
        default: reinterpret_cast<float*>(address)[index] = static_cast<float>(value);
    }
}

size_t place(const Layout& layout, size_t batch, size_t row, size_t col) {
    const size_t leading = static_cast<size_t>(layout.leading);
    const size_t within = layout.order ? row * leading + col : col * leading + row;
    return batch * static_cast<size_t>(layout.batch_stride) + within;
}

// What the matrix units see of an f32 input: TF32 keeps 10 bits of the fraction, bf16 7.
double as_input(double value, int type, int compute) {
    if (type != kF32) return value;
    const float plain = static_cast<float>(value);
    switch (compute) {
        case kFastTf32: return round_fraction(plain, 10);
        case kFastBf16: return round_fraction(plain, 7);
        case kFastF16: return f16_to_f32(f32_to_f16(plain));
        default: return value;
    }
}

// op(M) by columns, as the matrix units see it.
std::vector<double> gather(const Matrix& matrix, bool transposed, size_t batch, size_t rows,
                           size_t cols, int compute) {
    std::vector<double> out(rows * cols);
    for (size_t col = 0; col < cols; ++col) {
        for (size_t row = 0; row < rows; ++row) {
            const size_t at = transposed ? place(matrix.layout, batch, col, row)
                                         : place(matrix.layout, batch, row, col);
            out[col * rows + row] =
                as_input(load(matrix.address, matrix.layout.type, at), matrix.layout.type, compute);
        }
    }
    return out;
}

bool mask_bit(const Product& product, size_t batch, size_t row, size_t col) {
    const size_t bit = batch * static_cast<size_t>(product.aux_batch_stride) +
                       col * static_cast<size_t>(product.aux_leading) + row;
    return reinterpret_cast<const uint8_t*>(product.aux)[bit / 8] >> (bit % 8) & 1;
}

void set_mask_bit(const Product& product, size_t batch, size_t row, size_t col, bool on) {
    const size_t bit = batch * static_cast<size_t>(product.aux_batch_stride) +
                       col * static_cast<size_t>(product.aux_leading) + row;
    uint8_t& byte = reinterpret_cast<uint8_t*>(product.aux)[bit / 8];
    byte = static_cast<uint8_t>((byte & ~(1u << (bit % 8))) |
                                (static_cast<unsigned>(on) << (bit % 8)));
}

// The tanh form, as cuBLASLt documents it.
double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

double activate(const Product& product, size_t batch, size_t row, size_t col, double value) {
    if (product.epilogue & kGradient) return mask_bit(product, batch, row, col) ? value : 0;
    if (product.epilogue & kRelu) {
        if (product.epilogue & kAux) set_mask_bit(product, batch, row, col, value > 0);
        return value > 0 ? value : 0;
    }
    return product.epilogue & kGelu ? gelu(value) : value;
}

void store_bias(const Product& product, size_t batch, const std::vector<double>& sums) {
    const size_t offset = batch * static_cast<size_t>(product.bias_batch_stride);
    for (size_t i = 0; i < sums.size(); ++i)
        store(product.bias, product.bias_type, offset + i, sums[i]);
}

struct Sides {
    size_t m, n, k;
    std::vector<double> a, b;  // [m, k] and [k, n] by columns
};

// Gradients of the bias that come from an input rather than from the result.
void input_gradients(const Product& product, size_t batch, const Sides& sides) {
    if (product.epilogue & kBiasGradientA) {
        std::vector<double> sums(sides.m, 0);
        for (size_t k = 0; k < sides.k; ++k) {
            for (size_t i = 0; i < sides.m; ++i) sums[i] += sides.a[k * sides.m + i];
        }
        store_bias(product, batch, sums);
    }
    if (product.epilogue & kBiasGradientB) {
        std::vector<double> sums(sides.n, 0);
        for (size_t j = 0; j < sides.n; ++j) {
            for (size_t k = 0; k < sides.k; ++k) sums[j] += sides.b[j * sides.k + k];
        }
        store_bias(product, batch, sums);
    }
}

void multiply_batch(const Product& product, size_t batch) {
    Sides sides;
    sides.m = product.d.layout.rows;
    sides.n = product.d.layout.cols;
    sides.k = product.transpose_a ? product.a.layout.rows : product.a.layout.cols;
    sides.a = gather(product.a, product.transpose_a, batch, sides.m, sides.k, product.compute);
    sides.b = gather(product.b, product.transpose_b, batch, sides.k, sides.n, product.compute);
    const bool adds_bias = product.epilogue & kBias && !(product.epilogue & kGradient);
    std::vector<double> column(sides.m), row_sums(sides.m, 0);
    for (size_t j = 0; j < sides.n; ++j) {
        column.assign(sides.m, 0);
        for (size_t k = 0; k < sides.k; ++k) {
            const double factor = sides.b[j * sides.k + k];
            const double* from = &sides.a[k * sides.m];
            for (size_t i = 0; i < sides.m; ++i) column[i] += from[i] * factor;
        }
        for (size_t i = 0; i < sides.m; ++i) {
            double value = product.alpha * column[i];
            // C may hold anything where beta is 0.
            if (product.beta != 0)
                value += product.beta * load(product.c.address, product.c.layout.type,
                                             place(product.c.layout, batch, i, j));
            if (adds_bias)
                value += load(product.bias, product.bias_type,
                              batch * static_cast<size_t>(product.bias_batch_stride) + i);
            value = activate(product, batch, i, j, value);
            row_sums[i] += value;
            store(product.d.address, product.d.layout.type, place(product.d.layout, batch, i, j),
                  value);
        }
    }
    input_gradients(product, batch, sides);
    if (product.epilogue & kBiasGradient) store_bias(product, batch, row_sums);
}

}  // namespace

size_t type_bytes(int type) {
    return type == kF64 ? 8 : type == kF32 ? 4 : type == kF16 || type == kBf16 ? 2 : 0;
}

size_t matrix_bytes(const Layout& layout) {
    if (layout.rows == 0 || layout.cols == 0) return 0;
    const size_t last =
        place(layout, static_cast<size_t>(layout.batches) - 1, layout.rows - 1, layout.cols - 1);
    return (last + 1) * type_bytes(layout.type);
}

void multiply(const Product& product) {
    for (int32_t batch = 0; batch < product.d.layout.batches; ++batch)
        multiply_batch(product, static_cast<size_t>(batch));
}

}  // namespace driver::blas
