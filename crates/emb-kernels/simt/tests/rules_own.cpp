// A rule of one's own, written from the head of rules.cuh alone, in the kernels that it makes.
#include "update.cuh"
#include "update_pipeline.h"

// Momentum, and the mean of absolute gradients of a row beside it.
struct Momentum {
    double decay;
    float lr;
    float momentum;

    static constexpr int kRowSlots = 1, kElementSlots = 1;
    struct Row {
        float lr;
    };
    __device__ bool uses_statistic() const { return true; }
    __device__ bool statistic_reads_weights() const { return false; }
    __device__ double statistic_of(float, float g) const { return g < 0.0f ? -g : g; }
    __device__ Row row(float* state, double mean) const {
        state[0] = static_cast<float>(decay * static_cast<double>(state[0]) + mean);
        return {lr / (1.0f + state[0])};
    }
    __device__ float element(const Row& row, float w, float g, float* state) const {
        state[0] = momentum * state[0] + g;
        return w - row.lr * state[0];
    }
    __device__ float max_norm() const { return INFINITY; }
};
EMB_RULE(momentum, Momentum)

TEST(a_rule_of_ones_own_steps_as_its_plain_loop) {
    constexpr uint32_t dim = 20, lanes = 8;
    const Momentum rule{0.5, 0.1f, 0.9f};
    check::Random random(4);
    check::Buffer<float> weights(random.uniforms(3 * dim)), momenta(random.uniforms(3 * dim));
    check::Buffer<float> state(3, 0.25f), pooled(random.uniforms(4 * dim));
    std::vector<float> wanted = weights.values(), moved = momenta.values();
    std::vector<float> rows = state.values();
    check::Buffer<emb::Table> tables(1);
    tables[0].weights = weights.data();
    tables[0].row_state = state.data();
    tables[0].element_state = momenta.data();
    tables[0].dim = tables[0].table_dim = dim;
    tables[0].row_slots = tables[0].element_slots = 1;
    check::Buffer<emb::Feature> features(1);
    check::Buffer<emb::RuleRecord> records(1);
    records[0].max_gradient = INFINITY;
    std::memcpy(records[0].rule, &rule, sizeof rule);
    // Row 2 receives samples 1 and 3; row 0 sample 0.
    check::Buffer<emb::Run> runs(std::vector<emb::Run>{{0, 0, 0}, {2, 1, 0}, {~0ull, 3, ~0u}});
    check::Buffer<uint32_t> count(1, 2), tags(std::vector<uint32_t>{0, 1, 3});
    check::Buffer<uint64_t> offsets(5);
    const emb::Launch shape{dim, 0, 1, 4, 0, lanes, 0};
    LAUNCH(emb_update_momentum_f32, 1, 128, 0, tables.data(), records.data(), runs.data(),
           count.data(), tags.data(), nullptr, features.data(), offsets.data(), nullptr,
           pooled.data(), nullptr, nullptr, nullptr, nullptr, shape);

    for (const uint32_t row : {0u, 2u}) {
        std::vector<float> g(dim);
        for (const uint32_t sample : {0u, 1u, 3u}) {
            if ((sample == 0) != (row == 0)) continue;
            for (uint32_t i = 0; i < dim; ++i) g[i] += pooled[sample * dim + i];
        }
        double sums[16] = {};
        for (uint32_t i = 0; i < dim; ++i) sums[i % 16] += std::fabs(g[i]);
        for (uint32_t half = 8; half > 0; half /= 2) {
            for (uint32_t j = 0; j < half; ++j) sums[j] += sums[j + half];
        }
        rows[row] = static_cast<float>(0.5 * static_cast<double>(rows[row]) + sums[0] / dim);
        const float lr = 0.1f / (1.0f + rows[row]);
        for (uint32_t i = 0; i < dim; ++i) {
            float& m = moved[row * dim + i];
            m = 0.9f * m + g[i];
            wanted[row * dim + i] -= lr * m;
        }
    }
    EXPECT_ALL_EQUAL(weights, wanted);
    EXPECT_ALL_EQUAL(momenta, moved);
    EXPECT_ALL_EQUAL(state, rows);
}

CHECK_MAIN
