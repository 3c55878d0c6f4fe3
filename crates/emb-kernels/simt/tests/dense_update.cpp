// Update rules over dense parameters, against plain loops of the same formulas.
#include "check.h"
#include "dense_matrix.h"

#include "dense_update.cu"

namespace {

const Launch kShapes[] = {{dim3(1), dim3(32)}, {dim3(3), dim3(256)}};

// Runs `kernel` on `len` elements, `offset` floats from an aligned address, and compares with
// `step(w, g, state)` of each.
template <typename Launcher, typename Step>
void compare(uint64_t len, uint64_t offset, uint32_t slots, Launcher launcher, Step step) {
    for (const Launch& shape : kShapes) {
        Matrix parameter(1, len, 0, offset, 1), gradient(1, len, 0, 0, 2), state(slots, len, 0, 0, 3);
        for (uint32_t slot = 0; slot < slots; ++slot) {
            for (uint64_t k = 0; k < len; ++k) state(slot, k) = std::fabs(state(slot, k));
        }
        Matrix want(parameter), want_state(state);
        for (uint64_t k = 0; k < len; ++k) {
            float mine[2] = {};
            for (uint32_t slot = 0; slot < slots; ++slot) mine[slot] = state(slot, k);
            want(0, k) = step(parameter(0, k), gradient(0, k), mine);
            for (uint32_t slot = 0; slot < slots; ++slot) want_state(slot, k) = mine[slot];
        }
        launcher(shape, slots, parameter, state, gradient, len);
        EXPECT_ALL_EQUAL(parameter.all(), want.all());
        EXPECT_ALL_EQUAL(state.all(), want_state.all());
    }
}

template <typename Launcher, typename Step>
void sizes(uint32_t slots, Launcher launcher, Step step) {
    compare(1, 0, slots, launcher, step);
    compare(64, 0, slots, launcher, step);
    compare(1003, 0, slots, launcher, step);
    compare(66, 1, slots, launcher, step);
}

}  // namespace

TEST(sgd_steps_as_a_loop) {
    const emb::Sgd rule{0.1f, 0.99f, INFINITY};
    sizes(
        0,
        [&](const Launch& shape, auto&&... arguments) {
            LAUNCH(emb_dense_update_sgd, shape.grid, shape.block, 0, rule, arguments...);
        },
        [](float w, float g, float*) { return 0.99f * w - 0.1f * g; });
}

TEST(adagrad_steps_as_a_loop_with_and_without_a_history) {
    for (const uint32_t history : {0u, 1u}) {
        const emb::AdaGrad rule{0.1f, 1e-8f, 0.01f, 1.0f, 0.5f, INFINITY, history};
        sizes(
            1 + history,
            [&](const Launch& shape, auto&&... arguments) {
                LAUNCH(emb_dense_update_adagrad, shape.grid, shape.block, 0, rule, arguments...);
            },
            [&](float w, float g, float* state) {
                const float h = g + 0.01f * w;
                state[history] += h * h * 0.5f;
                const float v = history ? state[0] + state[1] : state[0];
                return w - 0.1f * h / (std::sqrt(v) + 1e-8f);
            });
    }
}

TEST(adam_steps_as_a_loop) {
    const emb::Adam rule{0.2f, 3.0f, 0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0.01f, 0.98f, INFINITY};
    sizes(
        2,
        [&](const Launch& shape, auto&&... arguments) {
            LAUNCH(emb_dense_update_adam, shape.grid, shape.block, 0, rule, arguments...);
        },
        [](float w, float g, float* state) {
            const float h = g + 0.01f * w;
            state[0] = 0.9f * state[0] + 0.1f * h;
            state[1] = 0.999f * state[1] + 0.001f * (h * h);
            return 0.98f * w - 0.2f * state[0] / (std::sqrt(state[1]) * 3.0f + 1e-8f);
        });
}

TEST(bytes_of_an_update_are_those_of_the_head_comment) {
    if (!simt_counts()) return;
    const uint64_t len = 1000;
    Matrix parameter(1, len, 0, 0, 1), gradient(1, len, 0, 0, 2), state(2, len, 0, 0, 3);
    const emb::Adam rule{0.2f, 3.0f, 0.9f, 0.1f, 0.999f, 0.001f, 1e-8f, 0.01f, 0.98f, INFINITY};
    const Touched adam = touched("emb_dense_update_adam", [&] {
        LAUNCH(emb_dense_update_adam, 1, 256, 0, rule, 2u, parameter, state, gradient, len);
    });
    EXPECT_EQUAL(adam.reads, (8 + 4 * 2) * len);
    EXPECT_EQUAL(adam.writes, (4 + 4 * 2) * len);
}

CHECK_MAIN
