// The interaction, forward and backward, against plain loops of fused multiply-adds: equal bits.
#include "check.h"
#include "dense_matrix.h"

#include "interaction.cu"

namespace {

struct Case {
    uint64_t batch;
    uint32_t features, dim;
    uint64_t pad, offset;
};

uint64_t out_cols(const Case& c) {
    return c.dim + uint64_t(c.features) * (c.features - 1) / 2;
}

// (i, j) of each pair in the order of the output.
std::vector<std::pair<uint32_t, uint32_t>> pairs(uint32_t features, uint32_t order) {
    std::vector<std::pair<uint32_t, uint32_t>> all;
    for (uint32_t i = 0; i < features; ++i) {
        for (uint32_t j = 0; j < features; ++j) {
            if (order == 0 ? j < i : i < j) all.emplace_back(i, j);
        }
    }
    return all;
}

// The launch of src/cuda/interaction.rs.
#define LAUNCH_INTERACT(KERNEL, CASE, SECOND, ...)                                          \
    do {                                                                                    \
        const uint32_t blocks = ((CASE).features + 31) / 32;                                \
        const uint32_t batch = (CASE).batch;                                                \
        if ((CASE).features <= 8) LAUNCH(KERNEL##_8, (batch + 3) / 4, 128, 0, __VA_ARGS__); \
        else if ((CASE).features <= 16)                                                     \
            LAUNCH(KERNEL##_16, (batch + 1) / 2, 128, 0, __VA_ARGS__);                      \
        else LAUNCH(KERNEL##_32, dim3(batch, SECOND), 128, 0, __VA_ARGS__);                 \
    } while (0)

void forward(const Case& c, uint32_t order) {
    Matrix x(c.batch, uint64_t(c.features) * c.dim, c.pad, c.offset, 1);
    Matrix out(c.batch, out_cols(c), c.pad, 0, 2), want(out);
    const auto all = pairs(c.features, order);
    for (uint64_t b = 0; b < c.batch; ++b) {
        for (uint32_t d = 0; d < c.dim; ++d) want(b, d) = x(b, d);
        for (size_t p = 0; p < all.size(); ++p) {
            float dot = 0.0f;
            for (uint32_t d = 0; d < c.dim; ++d) {
                dot = fmaf(x(b, all[p].first * c.dim + d), x(b, all[p].second * c.dim + d), dot);
            }
            want(b, c.dim + p) = dot;
        }
    }
    LAUNCH_INTERACT(emb_interact, c, blocks * (blocks + 1) / 2, x, x.stride, c.batch, c.features,
                    c.dim, out, out.stride, order);
    EXPECT_ALL_EQUAL(out.all(), want.all());
}

void backward(const Case& c, uint32_t order) {
    Matrix x(c.batch, uint64_t(c.features) * c.dim, c.pad, c.offset, 1);
    Matrix gradient(c.batch, out_cols(c), c.pad, c.offset, 2), out(x.rows, x.cols, c.pad, 0, 3);
    Matrix want(out);
    const auto all = pairs(c.features, order);
    for (uint64_t b = 0; b < c.batch; ++b) {
        std::vector<float> of_pairs(uint64_t(c.features) * c.features, 0.0f);
        for (size_t p = 0; p < all.size(); ++p) {
            const auto [i, j] = all[p];
            of_pairs[i * c.features + j] = gradient(b, c.dim + p);
            of_pairs[j * c.features + i] = gradient(b, c.dim + p);
        }
        for (uint32_t i = 0; i < c.features; ++i) {
            for (uint32_t d = 0; d < c.dim; ++d) {
                float sum = i == 0 ? gradient(b, d) : 0.0f;
                for (uint32_t k = 0; k < c.features; ++k) {
                    sum = fmaf(of_pairs[i * c.features + k], x(b, k * c.dim + d), sum);
                }
                want(b, i * c.dim + d) = sum;
            }
        }
    }
    LAUNCH_INTERACT(emb_interact_backward, c, blocks, x, x.stride, c.batch, c.features, c.dim,
                    gradient, gradient.stride, out, out.stride, order);
    EXPECT_ALL_EQUAL(out.all(), want.all());
}

// One feature, fewer than a team holds, exactly as many, and several blocks of them; dimensions of
// one tile, of less, of more; rows that begin anywhere.
const Case kCases[] = {
    {1, 1, 8, 0, 0},  {5, 2, 1, 1, 0},  {9, 8, 16, 0, 0},  {3, 5, 7, 2, 1},  {3, 9, 64, 4, 0},
    {2, 16, 66, 0, 1}, {2, 17, 4, 0, 0}, {2, 27, 64, 0, 0}, {1, 32, 68, 0, 2}, {1, 33, 5, 1, 0},
    {1, 70, 72, 0, 0},
};

}  // namespace

TEST(dot_products_have_the_bits_of_a_loop_for_all_sizes_and_orders) {
    for (const Case& c : kCases) {
        forward(c, 0);
        forward(c, 1);
    }
}

TEST(gradients_have_the_bits_of_a_loop_for_all_sizes_and_orders) {
    for (const Case& c : kCases) {
        backward(c, 0);
        backward(c, 1);
    }
}

TEST(no_schedule_changes_an_interaction) {
    check::for_each_schedule([] {
        for (const Case& c : {Case{5, 7, 66, 1, 0}, Case{1, 34, 65, 0, 0}}) {
            forward(c, 1);
            backward(c, 0);
        }
    });
}

// All accesses of a kernel since `touched` forgot those before.
static void expect_accesses(const char* kernel, uint64_t want_reads, uint64_t want_writes) {
    uint64_t reads = 0, writes = 0;
    simt_counters(kernel, &reads, &writes);
    EXPECT_EQUAL(reads, want_reads);
    EXPECT_EQUAL(writes, want_writes);
}

TEST(bytes_of_an_interaction_are_those_of_the_head_comments) {
    if (!simt_counts()) return;
    for (const Case& c : {Case{5, 7, 16, 0, 0}, Case{3, 27, 130, 0, 0}, Case{2, 40, 70, 0, 0}}) {
        const uint64_t size = c.features * c.dim, cols = out_cols(c), groups = (c.features + 31) / 32;
        // Pairs in one group of 32 features, and twice those of two, for every 64 dimensions.
        uint64_t pairs = c.features * (c.features - 1) / 2;
        if (groups == 2) {
            const uint64_t rest = c.features - 32, within = 32 * 31 / 2 + rest * (rest - 1) / 2;
            pairs = (2 * pairs - within) * ((c.dim + 63) / 64);
        }
        Matrix x(c.batch, size, 0, 0, 1), out(c.batch, cols, 0, 0, 2), more(c.batch, size, 0, 0, 3);
        const char* name = c.features <= 8 ? "emb_interact_8" : "emb_interact_32";
        const Touched forward = touched(name, [&] {
            LAUNCH_INTERACT(emb_interact, c, blocks * (blocks + 1) / 2, x, size, c.batch, c.features,
                            c.dim, out, cols, 0u);
        });
        EXPECT_EQUAL(forward.reads, 4 * c.batch * size);
        EXPECT_EQUAL(forward.writes, 4 * c.batch * cols);
        expect_accesses(name, forward.reads * groups, forward.writes);
        name = c.features <= 8 ? "emb_interact_backward_8" : "emb_interact_backward_32";
        const Touched backward = touched(name, [&] {
            LAUNCH_INTERACT(emb_interact_backward, c, blocks, x, size, c.batch, c.features, c.dim,
                            out, cols, more, size, 0u);
        });
        EXPECT_EQUAL(backward.reads, 4 * c.batch * (size + cols));
        EXPECT_EQUAL(backward.writes, 4 * c.batch * size);
        expect_accesses(name, 4 * c.batch * (groups * size + c.dim + pairs), backward.writes);
    }
}

CHECK_MAIN
