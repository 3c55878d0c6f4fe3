// Kernels over dense matrices and vectors move the bytes that their head comments say.
#include "bytes.h"
#include "dense_matrix.h"

#include "../../../emb-comm/cuda/reduce.cu"
#include "cross.cu"
#include "dense_update.cu"
#include "loss.cu"
#include "pointwise.cu"

using emb::reduce::Sources;

TEST(a_loss_reads_8_bytes_a_sample_and_writes_4_and_8_for_256) {
    for (const uint64_t samples : {1, 256, 700}) {
        const uint64_t chunks = chunks_of(samples);
        check::Buffer<float> logits(samples, 0.5f), labels(samples, 1.0f), gradient(samples);
        check::Buffer<double> partials(chunks), total(1);
        bytes::reset();
        LAUNCH(emb_bce_with_logits, 2, 256, 0, logits, labels, samples, 1.0f, gradient, partials);
        EXPECT_MOVED(logits, 4 * samples, 0);
        EXPECT_MOVED(labels, 4 * samples, 0);
        EXPECT_MOVED(gradient, 0, 4 * samples);
        EXPECT_MOVED(partials, 0, 8 * chunks);
        bytes::reset();
        LAUNCH(emb_loss_total, 1, 256, 0, partials, chunks, total);
        EXPECT_MOVED(partials, 8 * chunks, 0);
        EXPECT_MOVED(total, 0, 8);
    }
}

// With rows that lie on 16 bytes and with rows that do not.
TEST(a_fill_writes_each_element_once) {
    for (const uint64_t pad : {1, 4}) {
        Matrix x(7, 28, pad, 0, 1);
        for (const Launch& shape : kLaunches) {
            bytes::reset();
            LAUNCH(emb_fill, shape.grid, shape.block, 0, x, x.stride, x.rows, x.cols, 2.0f);
            EXPECT_MOVED(static_cast<float*>(x), 0, 4 * x.rows * x.cols);
        }
    }
}

TEST(sums_of_columns_read_each_element_once) {
    for (const uint64_t rows : {1, 256, 515}) {
        const uint64_t cols = 37, chunks = chunks_of(rows);
        Matrix x(rows, cols, 3, 0, rows);
        check::Buffer<float> partials(chunks * cols), out(cols);
        bytes::reset();
        LAUNCH(emb_column_sums, dim3(2, 2), dim3(32, 8), 0, x, x.stride, rows, cols, partials);
        EXPECT_MOVED(static_cast<float*>(x), 4 * rows * cols, 0);
        EXPECT_MOVED(partials, 0, 4 * chunks * cols);
        bytes::reset();
        LAUNCH(emb_column_totals, 1, dim3(32, 8), 0, partials, chunks, cols, out);
        EXPECT_MOVED(partials, 4 * chunks * cols, 0);
        EXPECT_MOVED(out, 0, 4 * cols);
    }
}

// The bias is read for every element, from the caches after the first row.
TEST(bias_activation_add_and_their_gradients_move_each_operand_once) {
    for (const uint64_t pad : {1, 4}) {
        const uint64_t rows = 300, cols = 36, moved = 4 * rows * cols;
        Matrix x(rows, cols, pad, 0, 1), y(rows, cols, pad, 0, 2), bias(1, cols, 0, 0, 3);
        check::Buffer<float> partials(2 * cols);
        float *const at_x = x, *const at_y = y;
        bytes::reset();
        LAUNCH(emb_bias_activation, 2, 64, 0, x, x.stride, rows, cols, bias, 1u);
        EXPECT_MOVED(at_x, moved, moved);
        EXPECT_MOVED(static_cast<float*>(bias), moved, 0);
        bytes::reset();
        LAUNCH(emb_relu_backward, dim3(2, 2), dim3(32, 8), 0, y, y.stride, x, x.stride, rows, cols,
               partials);
        EXPECT_MOVED(at_x, moved, moved);
        EXPECT_MOVED(at_y, moved, 0);
        EXPECT_MOVED(partials, 0, 4 * 2 * cols);
        bytes::reset();
        LAUNCH(emb_add, 2, 64, 0, x, x.stride, y, y.stride, rows, cols);
        EXPECT_MOVED(at_x, moved, 0);
        EXPECT_MOVED(at_y, moved, moved);
    }
}

TEST(a_cross_layer_moves_each_operand_once) {
    for (const uint64_t pad : {1, 4}) {
        const uint64_t rows = 300, cols = 36, moved = 4 * rows * cols;
        Matrix x0(rows, cols, pad, 0, 1), u(rows, cols, pad, 0, 2), x(rows, cols, pad, 0, 3);
        Matrix out(rows, cols, pad, 0, 4), bias(1, cols, 0, 0, 5);
        check::Buffer<float> partials(2 * cols);
        float *const at_x0 = x0, *const at_u = u, *const at_x = x, *const at_out = out;
        bytes::reset();
        LAUNCH(emb_cross, 2, 64, 0, x0, x0.stride, u, u.stride, bias, x, x.stride, out, out.stride,
               rows, cols);
        EXPECT_MOVED(at_x0, moved, 0);
        EXPECT_MOVED(at_u, moved, 0);
        EXPECT_MOVED(at_x, moved, 0);
        EXPECT_MOVED(at_out, 0, moved);
        Matrix more(rows, cols, pad, 0, 6);
        float* const at_more = more;
        bytes::reset();
        LAUNCH(emb_cross_backward, dim3(2, 2), dim3(32, 8), 0, x0, x0.stride, u, u.stride, bias, x,
               x.stride, out, out.stride, more, more.stride, rows, cols, partials);
        EXPECT_MOVED(at_x0, moved, 0);
        EXPECT_MOVED(at_u, moved, 0);
        EXPECT_MOVED(at_x, moved, 0);
        EXPECT_MOVED(at_out, 0, moved);
        EXPECT_MOVED(at_more, moved, moved);
        EXPECT_MOVED(partials, 0, 4 * 2 * cols);
    }
}

namespace {

// Each rule over 1003 elements; the parameter `offset` floats from 16 bytes.
template <typename Launcher>
void steps(uint32_t slots, uint64_t offset, Launcher launcher) {
    const uint64_t len = 1003;
    check::Buffer<float> parameter(len + offset, 0.5f), gradient(len, 0.25f), state(slots * len, 1.0f);
    bytes::reset();
    launcher(slots, parameter.data() + offset, state.data(), gradient.data(), len);
    EXPECT_MOVED(parameter, 4 * len, 4 * len);
    EXPECT_MOVED(gradient, 4 * len, 0);
    EXPECT_MOVED(state, 4 * slots * len, 4 * slots * len);
}

}  // namespace

TEST(a_dense_update_reads_and_writes_parameter_and_state_once) {
    for (const uint64_t offset : {0, 1}) {
        steps(0, offset, [](auto... a) {
            LAUNCH(emb_dense_update_sgd, 2, 256, 0, emb::Sgd{0.1f, 1.0f, INFINITY}, a...);
        });
        for (const uint32_t history : {0u, 1u}) {
            steps(1 + history, offset, [&](auto... a) {
                const emb::AdaGrad rule{0.1f, 1e-8f, 0.0f, 1.0f, 1.0f, INFINITY, history};
                LAUNCH(emb_dense_update_adagrad, 2, 256, 0, rule, a...);
            });
        }
        steps(2, offset, [](auto... a) {
            const emb::Adam rule{0.2f,   3.0f,  0.9f,  0.1f, 0.999f,
                                 0.001f, 1e-8f, 0.01f, 1.0f, INFINITY};
            LAUNCH(emb_dense_update_adam, 2, 256, 0, rule, a...);
        });
    }
}

namespace {

// The sums of `ranks` vectors, the second of which lies in the result.
template <typename T, typename Launcher>
void reduces(uint32_t ranks, uint64_t offset, Launcher launcher) {
    const uint64_t len = 67;
    std::vector<std::unique_ptr<check::Buffer<T>>> vectors;
    Sources sources{};
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        vectors.push_back(std::make_unique<check::Buffer<T>>(len + offset, T(rank)));
        sources.at[rank] = rank == 1 ? nullptr : vectors[rank]->data() + offset;
    }
    check::Buffer<T> out(len + offset, T(1));
    bytes::reset();
    launcher(sources, ranks, out.data() + offset, len);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_MOVED(vectors[rank]->begin(), rank == 1 ? 0 : len * sizeof(T), 0);
    }
    EXPECT_MOVED(out, ranks > 1 ? len * sizeof(T) : 0, len * sizeof(T));
}

template <typename T, typename Launcher> void reduces(Launcher launcher) {
    for (const uint32_t ranks : {1u, 3u, 6u}) {
        for (const uint64_t offset : {0, 1}) reduces<T>(ranks, offset, launcher);
    }
}

}  // namespace

#define TEST_REDUCTION(NAME, TYPE)                                                           \
    TEST(NAME##_reads_every_vector_once_and_writes_the_result_once) {                        \
        reduces<TYPE>([](auto... a) { LAUNCH(emb_reduce_##NAME, 2, 32, 0, a...); });         \
    }

TEST_REDUCTION(sum_f32, float)
TEST_REDUCTION(sum_f64, double)
TEST_REDUCTION(sum_u64, uint64_t)
TEST_REDUCTION(max_f32, float)
TEST_REDUCTION(max_f64, double)
TEST_REDUCTION(max_u64, uint64_t)

CHECK_MAIN
