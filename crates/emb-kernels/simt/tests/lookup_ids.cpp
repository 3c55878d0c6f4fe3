// The check of ids, and gradients of per-sample weights, against plain loops.
#include "lookup_case.h"

#include "ids.cu"
#include "weights.cu"

using namespace testing;

namespace {

Batch some_batch(uint64_t seed, uint64_t samples, bool weighted) {
    check::Random random(seed);
    Batch b;
    const uint32_t dims[] = {1, 7, 8, 33, 64, 200};
    for (uint32_t t = 0; t < 6; ++t) {
        b.tables.push_back(make_table(random, dims[t], t % 3, 1 + 9 * t));
    }
    for (uint32_t f = 0; f < 9; ++f) add_feature(b, f % 6, (f * 2 + seed) % 3);
    fill_bags(b, random, samples, 6, weighted);
    return b;
}

// First index of an offset that is below the one before it; 0 for one that is not 0 itself.
uint64_t first_bad_offset(const Batch& b) {
    if (b.offsets[0] != 0) return 0;
    for (uint64_t i = 1; i < b.offsets.size(); ++i) {
        if (b.offsets[i] < b.offsets[i - 1]) return i;
    }
    return ~0ull;
}

// First bad position of features first .. end, as the kernel finds it.
uint64_t first_bad(const Batch& b, uint32_t first, uint32_t end, unsigned blocks) {
    const uint32_t count = (uint32_t)b.features.size();
    check::Buffer<unsigned long long> report(6);
    check::Buffer<uint64_t> starts(count + 1);
    LAUNCH(emb_describe_batch, 1, 32, 0, b.features.data(), count, b.offsets.data(), b.batch, first,
           end, report, starts);
    EXPECT_EQUAL(report[emb::kFirst], b.offsets[first * b.batch]);
    EXPECT_EQUAL(report[emb::kEnd], b.offsets[end * b.batch]);
    LAUNCH(emb_check_ids, blocks, 256, 0, b.features.data(), first, end, b.offsets.data(), b.batch,
           b.offsets.size() - 1, b.values.data(), b.values.size(), report);
    EXPECT_EQUAL(report[emb::kFirstBadOffset], first_bad_offset(b));
    return report[emb::kFirstBad];
}

TEST(ids_of_their_tables_are_welcome) {
    for (uint64_t samples : {0, 1, 70}) {
        const Batch b = some_batch(samples, samples, false);
        EXPECT_EQUAL(first_bad(b, 0, 9, 3), ~0ull);
    }
}

TEST(the_first_bad_id_in_the_order_of_the_batch_is_told) {
    Batch b = some_batch(1, 300, false);
    check::Random random(2);
    check::for_each_schedule([&] {
        for (int round = 0; round < 8; ++round) {
            const std::vector<int64_t> good = b.values;
            uint64_t expected = ~0ull;
            for (int i = 0; i < 3; ++i) {
                const uint64_t at = random.below(b.values.size());
                uint32_t f = 0;
                while (at >= b.offsets[(f + 1) * b.batch]) ++f;
                const int64_t bad[] = {-1, (int64_t)b.features[f].rows, INT64_MIN, 1ll << 40};
                b.values[at] = bad[random.below(4)];
                expected = at < expected ? at : expected;
            }
            EXPECT_EQUAL(first_bad(b, 0, 9, 1 + round % 3), expected);
            b.values = good;
        }
    });
}

TEST(offsets_that_lie_are_told_and_nothing_outside_is_read) {
    check::Random random(5);
    for (int round = 0; round < 40; ++round) {
        Batch b = some_batch(1, 1 + round * 3, false);
        for (int i = 0; i < 2; ++i) {
            const uint64_t lies[] = {0, 1, b.values.size(), 1ull << 40, ~0ull};
            // The last one is that the number of ids is compared with.
            b.offsets[random.below(b.offsets.size() - 1)] = lies[random.below(5)];
        }
        first_bad(b, 0, 9, 1 + round % 3);
    }
}

TEST(ids_of_other_features_are_not_looked_at) {
    Batch b = some_batch(3, 40, false);
    const uint64_t from = b.offsets[4 * b.batch], to = b.offsets[5 * b.batch];
    EXPECT(to > from);
    b.values[from - 1] = -1;
    b.values[to] = -1;
    EXPECT_EQUAL(first_bad(b, 4, 5, 2), ~0ull);
    b.values[to - 1] = -1;
    EXPECT_EQUAL(first_bad(b, 4, 5, 2), to - 1);
}

// <row, gradient> in eight sums of f64, as src/cpu/weights.rs adds them.
double plain_dot(const Batch& b, uint32_t f, int64_t id, const float* gradient) {
    double sums[8] = {}, total = 0.0;
    for (uint32_t c = 0; c < b.features[f].dim; ++c) {
        sums[c % 8] += (double)b.table(f).at((uint64_t)id, c) * (double)gradient[c];
    }
    for (double sum : sums) total += sum;
    return total;
}

std::vector<float> plain_weight_gradients(const Batch& b, const std::vector<float>& gradient) {
    std::vector<float> out(b.values.size());
    for (uint64_t bag = 0; bag + 1 < b.offsets.size(); ++bag) {
        const uint32_t f = (uint32_t)(bag / b.batch);
        const emb::Feature& feature = b.features[f];
        const float* own = &gradient[bag % b.batch * b.width + feature.column];
        float total = 0.0f;
        double weighted = 0.0;
        if (feature.pooling == emb::kNone) continue;
        for (uint64_t k = b.offsets[bag]; k < b.offsets[bag + 1]; ++k) {
            const double product = plain_dot(b, f, b.values[k], own);
            const float weight = b.weights.empty() ? 1.0f : b.weights[k];
            total += weight;
            weighted += (double)weight * product;
            out[k] = (float)product;
        }
        if (feature.pooling != emb::kMean) continue;
        for (uint64_t k = b.offsets[bag]; k < b.offsets[bag + 1]; ++k) {
            const double difference = (double)out[k] - weighted / (double)total;
            out[k] = total == 0.0f ? 0.0f : (float)(difference / (double)total);
        }
    }
    return out;
}

TEST(gradients_of_weights_are_plain_loops) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
        Batch b = some_batch(seed, 1 + seed * 11, seed % 2 == 0);
        if (seed == 0 && b.weights.size() > 1) b.weights[1] = -b.weights[0];
        check::Random random(seed);
        std::vector<float> gradient = random.uniforms(b.batch * b.width + 1);
        const uint32_t count = (uint32_t)b.features.size();
        check::Buffer<float> out(b.values.size(), 9.0f);
        LAUNCH(emb_weight_gradients, (unsigned)((count * b.batch + 31) / 32), 256, 0,
               b.features.data(), count, b.offsets.data(), b.batch, b.values.data(),
               b.weights_or_null(), gradient.data(), b.width, out);
        EXPECT_SAME_BITS(out, plain_weight_gradients(b, gradient));
    }
}

}  // namespace

CHECK_MAIN
