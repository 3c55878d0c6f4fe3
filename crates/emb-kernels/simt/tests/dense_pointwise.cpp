// Bias and activation, their gradients, fill and add, against plain loops.
#include "check.h"
#include "dense_matrix.h"

#include "pointwise.cu"

namespace {

struct Case {
    uint64_t rows, cols, pad, offset;
};
// Aligned rows, rows of other lengths, rows that begin elsewhere.
const Case kCases[] = {{1, 1, 0, 0}, {5, 64, 0, 0}, {7, 66, 2, 0}, {3, 33, 1, 1}, {9, 1, 3, 0}};

void bias_activation(const Case& c, const Launch& launch, uint32_t activation) {
    Matrix x(c.rows, c.cols, c.pad, c.offset, 1), bias(1, c.cols, 0, c.offset, 2);
    x(0, 0) = NAN;
    if (c.cols > 1) x(0, 1) = -INFINITY;
    Matrix want(x);
    for (uint64_t i = 0; i < c.rows; ++i) {
        for (uint64_t j = 0; j < c.cols; ++j) {
            const float sum = x(i, j) + bias(0, j);
            want(i, j) = activation == 1 && sum < 0.0f ? 0.0f : sum;
        }
    }
    LAUNCH(emb_bias_activation, launch.grid, launch.block, 0, x, x.stride, x.rows, x.cols, bias,
           activation);
    EXPECT_ALL_EQUAL(x.all(), want.all());
}

}  // namespace

TEST(bias_and_activation_round_as_a_loop_and_keep_not_a_number) {
    check::for_each_schedule([] {
        for (const Case& c : kCases) {
            for (const Launch& launch : kLaunches) {
                bias_activation(c, launch, 0);
                bias_activation(c, launch, 1);
            }
        }
    });
}

TEST(fill_and_add_touch_every_element_once_and_nothing_between_rows) {
    for (const Case& c : kCases) {
        for (const Launch& launch : kLaunches) {
            Matrix x(c.rows, c.cols, c.pad, c.offset, 1), out(c.rows, c.cols, c.pad + 4, 0, 2);
            Matrix sum(out), filled(out);
            for (uint64_t i = 0; i < c.rows; ++i) {
                for (uint64_t j = 0; j < c.cols; ++j) {
                    sum(i, j) += x(i, j);
                    filled(i, j) = 2.5f;
                }
            }
            LAUNCH(emb_add, launch.grid, launch.block, 0, x, x.stride, out, out.stride, x.rows,
                   x.cols);
            EXPECT_ALL_EQUAL(out.all(), sum.all());
            LAUNCH(emb_fill, launch.grid, launch.block, 0, out, out.stride, out.rows, out.cols,
                   2.5f);
            EXPECT_ALL_EQUAL(out.all(), filled.all());
        }
    }
}

namespace {

// Both stages of column sums of 600 rows, the first by `first(grid, partials)`.
template <typename First>
void two_stages(uint64_t rows, uint64_t cols, const std::vector<float>& want, First first) {
    for (const dim3 grid : {dim3(1, 1), dim3(3, 2)}) {
        check::Buffer<float> partials(chunks_of(rows) * cols, NAN), out(cols, NAN);
        first(grid, partials);
        LAUNCH(emb_column_totals, dim3(grid.y), dim3(32, 8), 0, partials, chunks_of(rows), cols,
               out);
        EXPECT_ALL_EQUAL(out, want);
    }
}

}  // namespace

TEST(column_sums_have_one_order_for_every_launch_and_schedule) {
    check::for_each_schedule([] {
        for (const Case& c : {Case{600, 3, 1, 0}, Case{256, 33, 0, 0}, Case{1, 1, 0, 0}}) {
            Matrix x(c.rows, c.cols, c.pad, c.offset, 1);
            two_stages(c.rows, c.cols, column_sums(x), [&](dim3 grid, float* partials) {
                LAUNCH(emb_column_sums, grid, dim3(32, 8), 0, x, x.stride, x.rows, x.cols,
                       partials);
            });
        }
    });
}

TEST(sums_of_more_than_256_chunks_stay_in_order) {
    Matrix partials(600, 3, 0, 0, 1);
    check::Buffer<float> out(3, NAN);
    std::vector<float> want(3, 0.0f);
    for (uint64_t i = 0; i < 600; ++i) {
        for (uint64_t j = 0; j < 3; ++j) want[j] += partials(i, j);
    }
    LAUNCH(emb_column_totals, dim3(1), dim3(32, 8), 0, partials, 600, 3, out);
    EXPECT_ALL_EQUAL(out, want);
}

TEST(relu_backward_masks_by_the_output_and_sums_what_is_left) {
    check::for_each_schedule([] {
        const uint64_t rows = 259, cols = 34;
        Matrix y(rows, cols, 2, 0, 1), gradient(rows, cols, 0, 1, 2);
        y(3, 3) = NAN;
        y(4, 3) = 0.0f;
        gradient(5, 5) = NAN;
        y(5, 5) = 1.0f;
        Matrix want(gradient);
        for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < cols; ++j) want(i, j) = y(i, j) > 0.0f ? want(i, j) : 0.0f;
        }
        two_stages(rows, cols, column_sums(want), [&](dim3 grid, float* partials) {
            LAUNCH(emb_relu_backward, grid, dim3(32, 8), 0, y, y.stride, gradient, gradient.stride,
                   rows, cols, partials);
            // The second time masks what is masked.
            EXPECT_ALL_EQUAL(gradient.all(), want.all());
        });
    });
}

TEST(bytes_are_those_of_the_head_comments) {
    if (!simt_counts()) return;
    const uint64_t rows = 300, cols = 40, elements = rows * cols;
    Matrix x(rows, cols, 0, 0, 1), y(rows, cols, 0, 0, 2), bias(1, cols, 0, 0, 3);
    check::Buffer<float> partials(2 * cols, 0.0f);
    const Touched activation = touched("emb_bias_activation", [&] {
        LAUNCH(emb_bias_activation, dim3(1, 4), dim3(16, 8), 0, x, cols, rows, cols, bias, 1u);
    });
    EXPECT_EQUAL(activation.reads, 4 * (elements + cols));
    EXPECT_EQUAL(activation.writes, 4 * elements);
    const Touched backward = touched("emb_relu_backward", [&] {
        LAUNCH(emb_relu_backward, dim3(2, 2), dim3(32, 8), 0, y, cols, x, cols, rows, cols,
               partials);
    });
    EXPECT_EQUAL(backward.reads, 8 * elements);
    EXPECT_EQUAL(backward.writes, 4 * elements + 4 * 2 * cols);
    const Touched add = touched("emb_add", [&] {
        LAUNCH(emb_add, dim3(1, 4), dim3(16, 8), 0, x, cols, y, cols, rows, cols);
    });
    EXPECT_EQUAL(add.reads, 8 * elements);
    EXPECT_EQUAL(add.writes, 4 * elements);
}

CHECK_MAIN
