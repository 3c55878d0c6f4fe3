// One step of an update: a batch, tables, the launches, and the same by plain loops.
#pragma once

#include <map>

#include "rules_reference.h"
#include "update.cuh"
#include "update_pipeline.h"

using Step = void (*)(const Options&, std::vector<float>&, RowState&, const std::vector<float>&,
                      double);

// One rule under test, with its launch and its plain loop.
struct RuleCase {
    const char* name;
    uint32_t row_slots, element_slots;
    bool measures;
    Step step;
    std::vector<unsigned char> bytes;
};

// How rows are stored and which batch they meet.
struct Setting {
    Options options;
    float max_gradient = INFINITY;
    bool stochastic = false, weighted = false, hot = false, direct = false;
    uint32_t batch = 7;
    std::vector<uint32_t> dims{8, 3, 40};
};

template <typename T> T stored(float x) { return emb::nearest<T>(x); }

// Tables in "device" memory, and their twins for the plain loop.
template <typename T> struct TestTable {
    uint32_t dim, row_slots, element_slots;
    uint64_t rows;
    std::vector<T> weights;
    std::vector<float> row_state, element_state;

    TestTable(uint32_t dim, uint64_t rows, const RuleCase& rule, std::mt19937& random)
        : dim(dim), row_slots(rule.row_slots), element_slots(rule.element_slots), rows(rows) {
        std::normal_distribution<float> normal(0.0f, 0.1f);
        for (uint64_t i = 0; i < rows * dim; ++i) {
            weights.push_back(stored<T>(normal(random)));
        }
        row_state.assign(rows * row_slots, 0.25f);
        element_state.assign(rows * element_slots * dim, 0.125f);
    }
};

// A batch of features: sums and means over every table in turn, the last feature a sequence.
struct TestBatch {
    uint32_t batch, features;
    std::vector<uint64_t> offsets{0};
    std::vector<int64_t> values;
    std::vector<float> weights, pooled;
    std::vector<std::vector<float>> sequences;
    std::vector<emb::Feature> described;
    uint32_t width = 0;
};

inline TestBatch make_batch(const Setting& setting, uint64_t rows, std::mt19937& random) {
    TestBatch out;
    const uint32_t tables = static_cast<uint32_t>(setting.dims.size());
    std::normal_distribution<float> normal;
    out.batch = setting.batch;
    out.features = setting.direct ? tables : 2 * tables + 1;
    uint32_t sequences = 0;
    for (uint32_t f = 0; f < out.features; ++f) {
        emb::Feature feature{};
        feature.table = f % tables;
        feature.pooling = f < tables ? emb::kSum : f < 2 * tables ? emb::kMean : emb::kNone;
        feature.dim = setting.dims[feature.table];
        feature.column = out.width;
        feature.rows = rows;
        feature.first_key = feature.table * rows;
        if (feature.pooling == emb::kNone) {
            feature.sequence = sequences++;
        } else {
            out.width += feature.dim;
        }
        out.described.push_back(feature);
        for (uint32_t b = 0; b < out.batch; ++b) {
            const uint32_t ids = setting.hot && f == 0 ? 700 : random() % 4;
            for (uint32_t k = 0; k < ids; ++k) {
                const bool hot = setting.hot && f == 0 && random() % 8 != 0;
                out.values.push_back(hot ? 2 : static_cast<int64_t>(random() % rows));
                out.weights.push_back(normal(random));
            }
            out.offsets.push_back(out.values.size());
        }
        if (feature.pooling == emb::kNone) {
            const uint64_t lookups = out.offsets.back() - out.offsets[f * out.batch];
            out.sequences.emplace_back(lookups * feature.dim + 1);
            for (float& x : out.sequences.back()) {
                x = normal(random);
            }
        }
    }
    out.pooled.resize(static_cast<size_t>(out.batch) * out.width);
    for (float& x : out.pooled) {
        x = normal(random);
    }
    return out;
}

// What every lookup adds to its row, in the order of the batch: by key, `dim` floats a lookup.
inline std::map<uint64_t, std::vector<std::vector<float>>> contributions(const TestBatch& batch,
                                                                         const Setting& setting) {
    std::map<uint64_t, std::vector<std::vector<float>>> out;
    for (uint32_t f = 0; f < batch.features; ++f) {
        const emb::Feature& feature = batch.described[f];
        for (uint32_t b = 0; b < batch.batch; ++b) {
            const uint64_t from = batch.offsets[f * batch.batch + b];
            const uint64_t to = batch.offsets[f * batch.batch + b + 1];
            float total = 0.0f;
            for (uint64_t k = from; k < to; ++k) {
                total += setting.weighted ? batch.weights[k] : 1.0f;
            }
            for (uint64_t k = from; k < to; ++k) {
                const bool sequence = feature.pooling == emb::kNone;
                float scale = setting.weighted && !sequence ? batch.weights[k] : 1.0f;
                if (feature.pooling == emb::kMean) {
                    scale = total == 0.0f ? 0.0f : scale / total;
                }
                const uint64_t first = batch.offsets[f * batch.batch];
                const float* const row =
                    sequence ? &batch.sequences[feature.sequence][(k - first) * feature.dim]
                             : &batch.pooled[static_cast<size_t>(b) * batch.width + feature.column];
                std::vector<float> add;
                for (uint32_t i = 0; i < feature.dim; ++i) {
                    const float x = row[i] * scale, bound = setting.max_gradient;
                    add.push_back(x > bound ? bound : x < -bound ? -bound : x);
                }
                out[feature.first_key + static_cast<uint64_t>(batch.values[k])].push_back(add);
            }
        }
    }
    return out;
}

// Adds lookups in order, or chunks of them where there are many.
inline std::vector<float> added(const std::vector<std::vector<float>>& rows, size_t chunk) {
    std::vector<float> sum(rows[0].size(), 0.0f);
    for (size_t k = 0; k < rows.size(); k += chunk) {
        std::vector<float> part(sum.size(), 0.0f);
        for (size_t j = k; j < rows.size() && j < k + chunk; ++j) {
            for (size_t i = 0; i < part.size(); ++i) {
                part[i] += rows[j][i];
            }
        }
        for (size_t i = 0; i < part.size(); ++i) {
            sum[i] += part[i];
        }
    }
    return sum;
}
