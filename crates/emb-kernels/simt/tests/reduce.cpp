// Reductions in the order of ranks, against a plain loop.
#include "check.h"

#include "../../../emb-comm/cuda/reduce.cu"

#include <cmath>
#include <memory>

namespace {

using emb::reduce::Sources;

template <typename T> T number(check::Random& random) {
    if constexpr (std::is_integral<T>::value) {
        return random.bits();
    } else {
        return static_cast<T>(random.uniform()) * static_cast<T>(1000.0);
    }
}

// `own` is the rank whose vector is what `out` has on entry; `offset` elements from 16 bytes.
template <typename T, typename Combine, typename Launcher>
void compare(uint32_t ranks, uint64_t len, uint32_t own, uint64_t offset, Combine combine,
             Launcher launcher) {
    check::Random random(ranks + len);
    std::vector<std::unique_ptr<check::Buffer<T>>> vectors;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        vectors.push_back(std::make_unique<check::Buffer<T>>(offset + len));
        for (T& each : *vectors.back()) each = number<T>(random);
    }
    if (!std::is_integral<T>::value && len > 2) (*vectors[0])[offset + 1] = static_cast<T>(NAN);
    if (!std::is_integral<T>::value && len > 2) {
        (*vectors[ranks - 1])[offset + 2] = static_cast<T>(NAN);
    }
    std::vector<T> want(vectors[0]->begin() + offset, vectors[0]->end());
    for (uint32_t rank = 1; rank < ranks; ++rank) {
        for (uint64_t k = 0; k < len; ++k) want[k] = combine(want[k], (*vectors[rank])[offset + k]);
    }
    check::Buffer<T> out(offset + len);
    Sources sources{};
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        sources.at[rank] = rank == own ? nullptr : vectors[rank]->data() + offset;
        if (rank == own) {
            for (uint64_t k = 0; k < offset + len; ++k) out[k] = (*vectors[rank])[k];
        }
    }
    launcher(sources, ranks, out.data() + offset, len);
    EXPECT_ALL_EQUAL(std::vector<T>(out.begin() + offset, out.end()), want);
}

template <typename T, typename Combine, typename Launcher>
void sizes(Combine combine, Launcher launcher) {
    const uint32_t none = 1000;
    compare<T>(1, 5, none, 0, combine, launcher);
    compare<T>(3, 64, 1, 0, combine, launcher);
    compare<T>(4, 67, 0, 0, combine, launcher);
    compare<T>(5, 33, 4, 1, combine, launcher);
    compare<T>(64, 9, none, 0, combine, launcher);
}

#define TEST_REDUCTION(NAME, TYPE, COMBINE)                                                       \
    TEST(NAME##_is_that_of_a_loop_in_rank_order) {                                                \
        check::for_each_schedule([] {                                                             \
            sizes<TYPE>(COMBINE, [](Sources sources, uint32_t ranks, TYPE* out, uint64_t len) {   \
                LAUNCH(emb_reduce_##NAME, 2, 32, 0, sources, ranks, out, len);                    \
            });                                                                                   \
        });                                                                                       \
    }

const auto kSum = [](auto a, auto b) { return a + b; };
const auto kMax = [](auto a, auto b) { return a > b || a != a ? a : b; };

}  // namespace

TEST_REDUCTION(sum_f32, float, kSum)
TEST_REDUCTION(sum_f64, double, kSum)
TEST_REDUCTION(sum_u64, uint64_t, kSum)
TEST_REDUCTION(max_f32, float, kMax)
TEST_REDUCTION(max_f64, double, kMax)
TEST_REDUCTION(max_u64, uint64_t, kMax)

TEST(bytes_of_a_reduction_are_those_of_the_head_comment) {
    if (!simt_counts()) return;
    check::Buffer<float> a(1000, 1.0f), b(1000, 2.0f), out(1000, 4.0f);
    const Sources sources{{a.data(), nullptr, b.data()}};
    simt_counters_reset();
    LAUNCH(emb_reduce_sum_f32, 2, 64, 0, sources, 3u, out, 1000);
    uint64_t reads = 0, writes = 0;
    simt_counters("emb_reduce_sum_f32", &reads, &writes);
    EXPECT_EQUAL(reads, 3 * 4 * 1000u);
    EXPECT_EQUAL(writes, 4 * 1000u);
}

CHECK_MAIN
