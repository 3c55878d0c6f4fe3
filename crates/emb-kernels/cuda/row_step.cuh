// One step of a rule on one row, by a part; the row's gradient lies in `stage`.
//
// Weights and state are read once and written once, 16 bytes (8 for 16-bit weights) a lane where
// dim is a multiple of 4. A row-wise rule whose statistic needs the weights (L2 decay) reads them
// twice, the second time from cache.
#pragma once

#include "contributions.cuh"
#include "philox.cuh"

namespace emb {

// Sums `term(column)` over the row in the order of sum_of_squares.rs: term i joins partial sum
// i % 16 in ascending i; partial sums are folded by halves. All lanes get the sum.
template <typename Term>
__device__ __forceinline__ double sum_in_order(const Part& part, uint32_t dim, const Term& term) {
    constexpr uint32_t kSums = 16;
    // Lane l has partial sums l, l + lanes, ..: four of them where a part is 4 lanes.
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll
    for (uint32_t q = 0; q < 4; ++q) {
        const uint32_t first = part.lane + q * part.lanes;
        if (first < kSums) {
            for (uint32_t column = first; column < dim; column += kSums) {
                sum[q] += term(column);
            }
        }
    }
    if (part.lanes == 4) {
        sum[0] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    } else if (part.lanes == 8) {
        sum[0] += sum[1];
    }
    const uint32_t left = part.lanes < kSums ? part.lanes : kSums;
    for (uint32_t half = left / 2; half > 0; half /= 2) {
        sum[0] += part.from(sum[0], (part.lane + half) % part.lanes);
    }
    return part.from(sum[0], 0);
}

// One row of a table of `T`.
template <typename T> struct Row {
    T* weights;
    float* row_state;
    float* element_state;
};

template <typename T> __device__ __forceinline__ Row<T> row_of(const Table& table, uint64_t row) {
    return {static_cast<T*>(table.weights) + row * table.dim,
            table.row_state + row * table.row_slots,
            table.element_state + row * table.element_slots * table.dim};
}

// The elements of the row: new state to memory, new weights to memory or to `stage`.
template <typename R, typename T, int V>
__device__ __forceinline__ void step_elements(const Part& part, const R& rule,
                                              const typename R::Row& shared, const Table& table,
                                              Row<T> row, float* stage, bool staged) {
    constexpr int kSlots = R::kElementSlots > 0 ? R::kElementSlots : 1;
    for (uint32_t column = V * part.lane; column < table.dim; column += V * part.lanes) {
        const Vector<float, V> gradient = load_vector<V>(stage + column);
        Vector<T, V> stored = load_vector<V>(row.weights + column);
        Vector<float, V> state[kSlots] = {};
#pragma unroll
        for (int slot = 0; slot < R::kElementSlots; ++slot) {
            if (static_cast<uint32_t>(slot) < table.element_slots) {
                state[slot] = load_vector<V>(row.element_state + slot * table.dim + column);
            }
        }
        Vector<float, V> weights;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            float own[kSlots];
#pragma unroll
            for (int slot = 0; slot < kSlots; ++slot) {
                own[slot] = state[slot].v[i];
            }
            weights.v[i] = rule.element(shared, load(stored.v[i]), gradient.v[i], own);
#pragma unroll
            for (int slot = 0; slot < kSlots; ++slot) {
                state[slot].v[i] = own[slot];
            }
            stored.v[i] = nearest<T>(weights.v[i]);
        }
#pragma unroll
        for (int slot = 0; slot < R::kElementSlots; ++slot) {
            if (static_cast<uint32_t>(slot) < table.element_slots) {
                store_vector<V>(row.element_state + slot * table.dim + column, state[slot]);
            }
        }
        if (staged) {
            store_vector<V>(stage + column, weights);
        } else {
            store_vector<V>(row.weights + column, stored);
        }
    }
}

// Rounds the staged row stochastically, in place: each evaluation of random bits serves 8 columns,
// 8 apart.
template <typename T>
__device__ __forceinline__ void round_stage(const Part& part, const Table& table, uint64_t row,
                                            uint64_t step, float* stage) {
    const uint64_t global = global_row(table, row);
    const Key key{table.rounding_key[0], table.rounding_key[1]};
    const uint32_t first = table.first_column, end = table.first_column + table.dim;
    const uint32_t blocks_end = (end + 63) / 64 * 8;
    for (uint32_t block = first / 64 * 8 + part.lane; block < blocks_end; block += part.lanes) {
        const Words words = rounding_words(key, global, step, block);
#pragma unroll
        for (uint32_t i = 0; i < 8; ++i) {
            const uint32_t column = block / 8 * 64 + block % 8 + 8 * i;
            if (column >= first && column < end) {
                const uint16_t random = static_cast<uint16_t>(words.w[i / 2] >> (16 * (i % 2)));
                float& weight = stage[column - first];
                weight = load(stochastic<T>(weight, random));
            }
        }
    }
}

template <typename T, int V>
__device__ __forceinline__ void store_stage(const Part& part, uint32_t dim, T* weights,
                                            const float* stage) {
    for (uint32_t column = V * part.lane; column < dim; column += V * part.lanes) {
        const Vector<float, V> from = load_vector<V>(stage + column);
        Vector<T, V> stored;
#pragma unroll
        for (int i = 0; i < V; ++i) {
            stored.v[i] = nearest<T>(from.v[i]);
        }
        store_vector<V>(weights + column, stored);
    }
}

// What the columns here add to the row's statistic.
template <typename R, typename T>
__device__ __forceinline__ double statistic(const Part& part, const R& rule, uint32_t dim,
                                            const T* weights, const float* gradient) {
    const bool reads = rule.statistic_reads_weights();
    return sum_in_order(part, dim, [&](uint32_t column) {
        return rule.statistic_of(reads ? load(weights[column]) : 0.0f, gradient[column]);
    });
}

// The whole step. `total` is the statistic of all columns of the row, null where they are all here.
template <typename R, typename T>
__device__ __forceinline__ void step_row(const Part& part, const R& rule, const Table& table,
                                         uint64_t number, const double* total, uint64_t step,
                                         float* stage) {
    constexpr int kSlots = R::kRowSlots > 0 ? R::kRowSlots : 1;
    const Row<T> row = row_of<T>(table, number);
    part.sync();
    double mean = 0.0;
    if (rule.uses_statistic()) {
        const double sum = total ? *total : statistic(part, rule, table.dim, row.weights, stage);
        mean = sum / static_cast<double>(table.table_dim);
    }
    float state[kSlots] = {};
#pragma unroll
    for (int slot = 0; slot < R::kRowSlots; ++slot) {
        if (static_cast<uint32_t>(slot) < table.row_slots) {
            state[slot] = row.row_state[slot];
        }
    }
    const typename R::Row shared = rule.row(state, mean);
    // All lanes have read the state, and the whole stage, before any of it changes.
    part.sync();
#pragma unroll
    for (int slot = 0; slot < R::kRowSlots; ++slot) {
        if (static_cast<uint32_t>(slot) < table.row_slots && part.lane == 0) {
            row.row_state[slot] = state[slot];
        }
    }
    const bool wide = table.dim % 4 == 0;
    const bool limited = rule.max_norm() < INFINITY;
    const bool rounded = sizeof(T) == 2 && table.stochastic;
    if (wide) {
        step_elements<R, T, 4>(part, rule, shared, table, row, stage, limited || rounded);
    } else {
        step_elements<R, T, 1>(part, rule, shared, table, row, stage, limited || rounded);
    }
    if (!limited && !rounded) {
        return;
    }
    part.sync();
    if (limited) {
        const double norm = sqrt(sum_in_order(part, table.dim, [&](uint32_t column) {
            const double weight = stage[column];
            return weight * weight;
        }));
        part.sync();
        if (norm > static_cast<double>(rule.max_norm())) {
            const float scale = static_cast<float>(static_cast<double>(rule.max_norm()) / norm);
            for (uint32_t column = part.lane; column < table.dim; column += part.lanes) {
                stage[column] *= scale;
            }
        }
        part.sync();
    }
    if (rounded) {
        round_stage<T>(part, table, number, step, stage);
        part.sync();
    }
    if (wide) {
        store_stage<T, 4>(part, table.dim, row.weights, stage);
    } else {
        store_stage<T, 1>(part, table.dim, row.weights, stage);
    }
}

}  // namespace emb
