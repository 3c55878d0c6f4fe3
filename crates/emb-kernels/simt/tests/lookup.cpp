// Pooled lookup and gathers against plain loops, bit for bit.
#include "lookup_case.h"

#include "gather.cu"
#include "ids.cu"
#include "lookup.cu"

using namespace testing;

namespace {

const uint32_t kDims[] = {1,  2,  3,   4,   5,   7,   8,   10,  12,   16,   31,   32,  33,
                          48, 64, 96,  100, 128, 200, 256, 320, 1023, 1024, 1280, 2048};
constexpr float kUntouched = 12345.0f;

void pools(const Batch& b, uint64_t stride, uint64_t out_offset, uint32_t chunk) {
    const std::vector<emb::Slot> all = slots(b);
    if (all.empty() || b.batch == 0) return;
    Floats out(out_offset + (b.batch - 1) * stride + b.width, kUntouched);
    const uint64_t blocks = (b.batch + 32 * chunk - 1) / (32 * chunk);
    launch("emb_pool", (unsigned)((blocks * all.size() + 7) / 8), 256, b.features.data(), all.data(),
           (uint32_t)all.size(), b.offsets.data(), b.values.data(), b.weights_or_null(),
           out.data.get() + out_offset, stride, b.batch, chunk);
    std::vector<float> expected(out_offset, kUntouched);
    const std::vector<float> rows = expected_pool(b, stride, kUntouched);
    expected.insert(expected.end(), rows.begin(), rows.begin() + (out.len - out_offset));
    same_bits(out.copy(), expected, "pooled rows, and nothing else written");
}

void gathers(const Batch& b) {
    const uint32_t count = (uint32_t)b.features.size();
    std::vector<unsigned long long> report(5);
    std::vector<uint64_t> starts(count + 1);
    launch("emb_describe_batch", 1, 32, b.features.data(), count, b.offsets.data(), b.batch, 0u,
           count, report.data(), starts.data());
    std::vector<float> expected;
    for (uint32_t f = 0; f < count; ++f) {
        check(starts[f] == expected.size(), "start of a sequence feature", f);
        std::vector<float> own;
        const uint64_t from = b.offsets[f * b.batch], to = b.offsets[(f + 1) * b.batch];
        for (uint64_t k = from; k < to; ++k) {
            for (uint32_t c = 0; c < b.features[f].dim; ++c) {
                own.push_back(b.table(f).at((uint64_t)b.values[k], c));
            }
        }
        const uint32_t chunk = f % 2 ? 8 : 32;
        Floats out(own.size());
        if (to > from) {
            launch("emb_gather", (unsigned)(((to - from + chunk - 1) / chunk + 7) / 8), 256,
                   b.features.data(), f, f + 1, b.offsets.data(), b.batch, b.values.data(),
                   (const uint64_t*)nullptr, out.data.get(), (uint64_t)b.features[f].dim, chunk);
        }
        same_bits(out.copy(), own, "rows of one feature");
        if (b.features[f].pooling == emb::kNone) {
            expected.insert(expected.end(), own.begin(), own.end());
        }
    }
    check(report[emb::kElements] == expected.size(), "elements of all sequences");
    check(report[emb::kLastOffset] == b.values.size(), "last offset");
    Floats out(expected.size());
    launch("emb_gather", (unsigned)(b.values.size() / 16 / 8 + 1), 256, b.features.data(), 0u, count,
           b.offsets.data(), b.batch, b.values.data(), starts.data(), out.data.get(), (uint64_t)0,
           16u);
    same_bits(out.copy(), expected, "rows of all sequence features");
}

// Every dim in every dtype once, three tables at a time.
void every_dim_and_dtype() {
    Random random{1};
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

void shapes_of_samples_and_bags() {
    Random random{2};
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

// A mean of weights that sum to 0 is 0.
void weights_without_a_sum() {
    Random random{3};
    Batch b;
    b.tables.push_back(make_table(random, 8, emb::kF32, 4));
    add_feature(b, 0, emb::kMean);
    b.batch = 2;
    b.values = {0, 1, 2};
    b.weights = {0.5f, -0.5f, 2.0f};
    b.offsets = {0, 2, 3};
    pools(b, 8, 0, 8);
}

}  // namespace

int main() {
    every_dim_and_dtype();
    shapes_of_samples_and_bags();
    weights_without_a_sum();
    return finish("lookup");
}
