// Tables, features and a jagged batch for the tests of lookup, and the plain loops they are
// compared with: written as src/cpu does it, without tiles, lanes or vectors.
#pragma once

#include "lookup_testing.h"
#include "tables.cuh"
#include "vector.cuh"

namespace testing {

struct HostTable {
    uint32_t dim, dtype;
    uint64_t rows;
    std::vector<float> f32;
    std::vector<uint16_t> half;

    const void* data() const { return dtype == emb::kF32 ? (const void*)f32.data() : half.data(); }
    float at(uint64_t row, uint32_t column) const {
        const uint64_t i = row * dim + column;
        if (dtype == emb::kF32) return f32[i];
        if (dtype == emb::kF16) {
            __half x;
            std::memcpy(&x, &half[i], 2);
            return emb::load(x);
        }
        __nv_bfloat16 x;
        std::memcpy(&x, &half[i], 2);
        return emb::load(x);
    }
};

inline HostTable make_table(check::Random& random, uint32_t dim, uint32_t dtype, uint64_t rows) {
    HostTable table{dim, dtype, rows, {}, {}};
    for (uint64_t i = 0; i < rows * dim; ++i) {
        const float value = unit(random) - 0.5f;
        uint16_t bits = 0;
        if (dtype == emb::kF32) {
            table.f32.push_back(value);
        } else if (dtype == emb::kF16) {
            const __half x = emb::nearest<__half>(value);
            std::memcpy(&bits, &x, 2);
            table.half.push_back(bits);
        } else {
            const __nv_bfloat16 x = emb::nearest<__nv_bfloat16>(value);
            std::memcpy(&bits, &x, 2);
            table.half.push_back(bits);
        }
    }
    return table;
}

struct Batch {
    std::vector<HostTable> tables;
    std::vector<emb::Feature> features;
    uint64_t batch = 0, width = 0;
    std::vector<uint64_t> offsets{0};
    std::vector<int64_t> values;
    std::vector<float> weights;

    const HostTable& table(uint32_t f) const { return tables[features[f].table]; }
    const float* weights_or_null() const { return weights.empty() ? nullptr : weights.data(); }
};

inline void add_feature(Batch& b, uint32_t table, uint32_t pooling) {
    const HostTable& t = b.tables[table];
    emb::Feature feature{};
    feature.table = table;
    feature.pooling = pooling;
    feature.column = (uint32_t)b.width;
    feature.dim = t.dim;
    feature.weights = t.data();
    feature.rows = t.rows;
    feature.dtype = t.dtype;
    b.features.push_back(feature);
    if (pooling != emb::kNone) b.width += t.dim;
}

// Bags of up to `longest` ids, many empty; half of the ids from the first rows.
inline void fill_bags(Batch& b, check::Random& random, uint64_t samples, uint64_t longest,
                      bool weighted) {
    b.batch = samples;
    for (size_t f = 0; f < b.features.size(); ++f) {
        const uint64_t rows = b.table((uint32_t)f).rows;
        for (uint64_t s = 0; s < samples; ++s) {
            const uint64_t length = random.below(3) == 0 ? 0 : random.below(longest + 1);
            for (uint64_t k = 0; k < length; ++k) {
                const uint64_t end = random.below(2) == 0 && rows > 4 ? 4 : rows;
                b.values.push_back((int64_t)random.below(end));
                if (!weighted) continue;
                b.weights.push_back(unit(random) + (random.below(4) ? 0.25f : -0.75f));
            }
            b.offsets.push_back(b.values.size());
        }
    }
}

// One warp of a pooled feature for every block of samples.
inline std::vector<emb::Slot> slots(const Batch& b) {
    std::vector<emb::Slot> out;
    for (uint32_t f = 0; f < b.features.size(); ++f) {
        const emb::Feature& feature = b.features[f];
        if (feature.pooling == emb::kNone) continue;
        const emb::RowShape shape =
            emb::row_shape((uint64_t)feature.weights, feature.dim, feature.dtype);
        for (uint32_t part = 0; part < shape.tiles * shape.lanes; ++part) {
            const uint8_t vector = (uint8_t)shape.vector, lanes = (uint8_t)shape.lanes;
            out.push_back(emb::Slot{f, (uint16_t)part, vector, lanes});
        }
    }
    return out;
}

inline std::vector<float> expected_pool(const Batch& b, uint64_t stride, float untouched) {
    std::vector<float> out(b.batch * stride, untouched);
    for (uint32_t f = 0; f < b.features.size(); ++f) {
        const emb::Feature& feature = b.features[f];
        if (feature.pooling == emb::kNone) continue;
        for (uint64_t s = 0; s < b.batch; ++s) {
            const uint64_t from = b.offsets[f * b.batch + s], to = b.offsets[f * b.batch + s + 1];
            float total = 0.0f;
            for (uint64_t k = from; k < to; ++k) total += b.weights.empty() ? 1.0f : b.weights[k];
            for (uint32_t c = 0; c < feature.dim; ++c) {
                float sum = 0.0f;
                for (uint64_t k = from; k < to; ++k) {
                    const float w = b.table(f).at((uint64_t)b.values[k], c);
                    sum += b.weights.empty() ? w : b.weights[k] * w;
                }
                if (feature.pooling == emb::kMean) sum = total == 0.0f ? 0.0f : sum / total;
                out[s * stride + feature.column + c] = sum;
            }
        }
    }
    return out;
}

}  // namespace testing
