// Pooled lookup and gathers against plain loops, bit for bit.
#include "lookup_case.h"

#include "gather.cu"
#include "ids.cu"
#include "lookup.cu"

#include <algorithm>

using namespace testing;

namespace {

const uint32_t kDims[] = {1,  2,  3,   4,   5,   7,   8,   10,  12,   16,   31,   32,  33,
                          48, 64, 96,  100, 128, 200, 256, 320, 1023, 1024, 1280, 2048};
constexpr float kUntouched = 12345.0f;

void pools(const Batch& b, uint64_t stride, uint64_t out_offset, uint32_t chunk) {
    const check::Buffer<emb::Slot> all(slots(b));
    if (all.size() == 0 || b.batch == 0) return;
    check::Buffer<float> out(out_offset + (b.batch - 1) * stride + b.width, kUntouched);
    const uint64_t blocks = (b.batch + 32 * chunk - 1) / (32 * chunk);
    LAUNCH(emb_pool, (unsigned)((blocks * all.size() + 7) / 8), 256, 0, b.features.data(), &all[0],
           (uint32_t)all.size(), b.offsets.data(), b.values.data(), b.weights_or_null(),
           out + out_offset, stride, b.batch, chunk);
    std::vector<float> expected(out_offset, kUntouched);
    const std::vector<float> rows = expected_pool(b, stride, kUntouched);
    expected.insert(expected.end(), rows.begin(), rows.begin() + (out.size() - out_offset));
    EXPECT_SAME_BITS(out, expected);
}

// Rows of the values of feature f.
std::vector<float> expected_rows(const Batch& b, uint32_t f) {
    std::vector<float> out;
    for (uint64_t k = b.offsets[f * b.batch]; k < b.offsets[(f + 1) * b.batch]; ++k) {
        for (uint32_t c = 0; c < b.features[f].dim; ++c) {
            out.push_back(b.table(f).at((uint64_t)b.values[k], c));
        }
    }
    return out;
}

void gathers_one(const Batch& b, uint32_t f, uint64_t stride, uint32_t chunk) {
    const uint64_t ids = b.offsets[(f + 1) * b.batch] - b.offsets[f * b.batch];
    if (ids == 0) return;
    const std::vector<float> rows = expected_rows(b, f);
    const uint32_t dim = b.features[f].dim;
    check::Buffer<float> out((ids - 1) * stride + dim, kUntouched);
    const unsigned blocks = (unsigned)(((ids + chunk - 1) / chunk + 7) / 8);
    LAUNCH(emb_gather, blocks, 256, 0, b.features.data(), f, f + 1, b.offsets.data(), b.batch,
           b.values.data(), nullptr, out, stride, chunk);
    std::vector<float> expected(out.size(), kUntouched);
    for (uint64_t k = 0; k < ids; ++k) {
        std::copy_n(rows.begin() + (long)(k * dim), dim, expected.begin() + (long)(k * stride));
    }
    EXPECT_SAME_BITS(out, expected);
}

void gathers(const Batch& b) {
    const uint32_t count = (uint32_t)b.features.size();
    check::Buffer<unsigned long long> report(5);
    check::Buffer<uint64_t> starts(count + 1);
    LAUNCH(emb_describe_batch, 1, 32, 0, b.features.data(), count, b.offsets.data(), b.batch, 0u,
           count, report, starts);
    std::vector<float> expected;
    for (uint32_t f = 0; f < count; ++f) {
        EXPECT_AT(starts[f] == expected.size(), f);
        gathers_one(b, f, b.features[f].dim + f % 3, f % 2 ? 8 : 32);
        if (b.features[f].pooling != emb::kNone) continue;
        const std::vector<float> rows = expected_rows(b, f);
        expected.insert(expected.end(), rows.begin(), rows.end());
    }
    EXPECT_EQUAL(report[emb::kElements], expected.size());
    EXPECT_EQUAL(report[emb::kLastOffset], b.values.size());
    check::Buffer<float> out(expected.size());
    const unsigned blocks = (unsigned)(b.values.size() / 16 / 8 + 1);
    LAUNCH(emb_gather, blocks, 256, 0, b.features.data(), 0u, count, b.offsets.data(), b.batch,
           b.values.data(), starts, out, 0u, 16u);
    EXPECT_SAME_BITS(out, expected);
}

// Three tables of each dim, one of each dtype.
TEST(lookups_of_every_dim_and_dtype_are_plain_loops) {
    check::Random random(1);
    const uint32_t chunks[] = {1, 2, 4, 8};
    for (uint32_t c = 0; c < sizeof(kDims) / sizeof(kDims[0]); ++c) {
        Batch b;
        b.width = c % 3;
        for (uint32_t t = 0; t < 3; ++t) {
            b.tables.push_back(make_table(random, kDims[c], (c + t) % 3, 1 + random.below(40)));
        }
        const uint32_t poolings[] = {emb::kSum, emb::kMean, emb::kNone, emb::kSum, emb::kNone};
        for (uint32_t f = 0; f < 5; ++f) add_feature(b, f % 3, poolings[(f + c) % 5]);
        const uint64_t samples = kDims[c] < 300 ? 1 + random.below(40) : 5;
        fill_bags(b, random, samples, c % 4 == 0 ? 40 : 6, c % 2 == 1);
        pools(b, b.width + c % 5, c % 2, chunks[c % 4]);
        gathers(b);
    }
}

TEST(lookups_of_any_number_of_samples_and_empty_bags_are_plain_loops) {
    check::Random random(2);
    for (uint64_t samples : {1, 2, 31, 32, 33, 257}) {
        for (uint64_t longest : {0, 1, 9}) {
            Batch b;
            b.tables.push_back(make_table(random, 16, emb::kF32, 9));
            b.tables.push_back(make_table(random, 64, emb::kF16, 300));
            add_feature(b, 0, emb::kSum);
            add_feature(b, 1, emb::kMean);
            add_feature(b, 0, emb::kNone);
            add_feature(b, 0, emb::kMean);
            fill_bags(b, random, samples, longest, longest == 9);
            for (uint32_t chunk : {1, 8}) pools(b, b.width, 0, chunk);
            gathers(b);
        }
    }
}

TEST(a_mean_of_weights_that_sum_to_0_is_0) {
    check::Random random(3);
    Batch b;
    b.tables.push_back(make_table(random, 8, emb::kF32, 4));
    add_feature(b, 0, emb::kMean);
    b.batch = 2;
    b.values = {0, 1, 2};
    b.weights = {0.5f, -0.5f, 2.0f};
    b.offsets = {0, 2, 3};
    pools(b, 8, 0, 8);
}

TEST(no_order_of_threads_changes_a_bit) {
    check::Random random(4);
    Batch b;
    b.tables.push_back(make_table(random, 48, emb::kBf16, 30));
    add_feature(b, 0, emb::kMean);
    add_feature(b, 0, emb::kNone);
    fill_bags(b, random, 20, 7, true);
    check::for_each_schedule([&] {
        pools(b, b.width, 0, 4);
        gathers(b);
    });
}

}  // namespace

CHECK_MAIN
