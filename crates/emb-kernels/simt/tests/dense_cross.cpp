// The cross layer, forward and backward, against plain loops.
#include "check.h"
#include "dense_matrix.h"

#include "cross.cu"
#include "pointwise.cu"

namespace {

struct Inputs {
    Matrix x0, u, bias, x, gradient;
    Inputs(uint64_t rows, uint64_t cols, uint64_t pad, uint64_t offset)
        : x0(rows, cols, pad, offset, 1),
          u(rows, cols, pad, 0, 2),
          bias(1, cols, 0, 0, 3),
          x(rows, cols, 0, offset, 4),
          gradient(rows, cols, pad, 0, 5) {}
};

void forward(uint64_t rows, uint64_t cols, uint64_t pad, uint64_t offset, const Launch& launch) {
    Inputs in(rows, cols, pad, offset);
    Matrix out(rows, cols, 4, 0, 6), want(out);
    for (uint64_t i = 0; i < rows; ++i) {
        for (uint64_t j = 0; j < cols; ++j) {
            want(i, j) = in.x0(i, j) * (in.u(i, j) + in.bias(0, j)) + in.x(i, j);
        }
    }
    LAUNCH(emb_cross, launch.grid, launch.block, 0, in.x0, in.x0.stride, in.u, in.u.stride, in.bias,
           in.x, in.x.stride, out, out.stride, rows, cols);
    EXPECT_ALL_EQUAL(out.all(), want.all());
}

void backward(uint64_t rows, uint64_t cols, uint64_t pad, dim3 grid) {
    Inputs in(rows, cols, pad, 0);
    Matrix of_u(rows, cols, 1, 0, 6), of_x0(rows, cols, 0, 1, 7), want_u(of_u), want_x0(of_x0);
    for (uint64_t i = 0; i < rows; ++i) {
        for (uint64_t j = 0; j < cols; ++j) {
            const float g = in.gradient(i, j);
            want_u(i, j) = g * in.x0(i, j);
            want_x0(i, j) += g * (in.u(i, j) + in.bias(0, j));
        }
    }
    check::Buffer<float> partials(chunks_of(rows) * cols, NAN), of_bias(cols, NAN);
    LAUNCH(emb_cross_backward, grid, dim3(32, 8), 0, in.x0, in.x0.stride, in.u, in.u.stride, in.bias,
           in.gradient, in.gradient.stride, of_u, of_u.stride, of_x0, of_x0.stride, rows, cols,
           partials);
    LAUNCH(emb_column_totals, dim3(grid.y), dim3(32, 8), 0, partials, chunks_of(rows), cols,
           of_bias);
    EXPECT_ALL_EQUAL(of_u.all(), want_u.all());
    EXPECT_ALL_EQUAL(of_x0.all(), want_x0.all());
    EXPECT_ALL_EQUAL(of_bias, column_sums(want_u));
}

}  // namespace

TEST(cross_rounds_as_a_loop_aligned_or_not) {
    for (const Launch& launch : kLaunches) {
        forward(5, 64, 0, 0, launch);
        forward(3, 34, 2, 0, launch);
        forward(4, 7, 1, 1, launch);
        forward(1, 1, 0, 0, launch);
    }
}

TEST(cross_backward_rounds_as_a_loop_in_every_schedule_and_grid) {
    check::for_each_schedule([] {
        backward(258, 35, 1, dim3(1, 1));
        backward(258, 35, 0, dim3(2, 2));
        backward(1, 1, 0, dim3(1, 1));
    });
}

TEST(bytes_of_cross_are_those_of_the_head_comments) {
    if (!simt_counts()) return;
    const uint64_t rows = 300, cols = 40, elements = rows * cols;
    Inputs in(rows, cols, 0, 0);
    Matrix out(rows, cols, 0, 0, 6), more(rows, cols, 0, 0, 7);
    check::Buffer<float> partials(2 * cols, 0.0f);
    const Touched forward = touched("emb_cross", [&] {
        LAUNCH(emb_cross, dim3(1, 4), dim3(16, 8), 0, in.x0, cols, in.u, cols, in.bias, in.x, cols,
               out, cols, rows, cols);
    });
    EXPECT_EQUAL(forward.reads, 12 * elements + 4 * cols);
    EXPECT_EQUAL(forward.writes, 4 * elements);
    const Touched backward = touched("emb_cross_backward", [&] {
        LAUNCH(emb_cross_backward, dim3(2, 2), dim3(32, 8), 0, in.x0, cols, in.u, cols, in.bias,
               in.gradient, cols, out, cols, more, cols, rows, cols, partials);
    });
    EXPECT_EQUAL(backward.reads, 16 * elements + 4 * cols);
    EXPECT_EQUAL(backward.writes, 8 * elements + 4 * 2 * cols);
}

CHECK_MAIN
