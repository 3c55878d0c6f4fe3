// What an update moves is what its head comment says, and defects in what it is given are caught.
#include "update.cu"
#include "update_pipeline.h"

namespace {

constexpr uint32_t kDim = 64, kLanes = 16, kSamples = 5;

// One table, one summed feature; sorted lookups as written by hand.
struct Step {
    check::Buffer<float> weights, state, pooled;
    check::Buffer<emb::Table> tables{1};
    check::Buffer<emb::Feature> features{1};
    check::Buffer<emb::RuleRecord> rules{1};
    check::Buffer<emb::Run> runs;
    check::Buffer<uint32_t> run_count{1};
    check::Buffer<uint32_t> tags;
    check::Buffer<uint64_t> offsets{kSamples + 1};

    Step(uint64_t rows, const std::vector<emb::Run>& listed, const std::vector<uint32_t>& bags)
        : weights(rows * kDim, 0.5f), state(rows), pooled(kSamples * kDim, 0.25f), runs(listed),
          tags(bags) {
        tables[0].weights = weights.data();
        tables[0].row_state = state.data();
        tables[0].rows = rows;
        tables[0].dim = tables[0].table_dim = kDim;
        tables[0].row_slots = 1;
        features[0].dim = kDim;
        rules[0].max_gradient = INFINITY;
        const emb::RowWiseAdaGrad rule{1.0, 0.1f, 1e-8f, 0.0f, 1.0f, INFINITY, 0};
        std::memcpy(rules[0].rule, &rule, sizeof rule);
        run_count[0] = static_cast<uint32_t>(listed.size()) - 1;
    }

    void run() {
        const emb::Launch shape{kDim, 0, 1, kSamples, 0, kLanes, 0};
        LAUNCH(emb_update_row_wise_adagrad_f32, 2, 128, 0, tables.data(), rules.data(), runs.data(),
               run_count.data(), tags.data(), nullptr, features.data(), offsets.data(), nullptr,
               pooled.data(), nullptr, nullptr, nullptr, nullptr, shape);
    }
};

}  // namespace

// Bytes do not grow with the rows of the table.
TEST(each_touched_row_is_read_and_written_once) {
    for (const uint64_t rows : {8, 4000}) {
        Step step(rows, {{1, 0, 0}, {3, 4, 0}, {7, 5, 0}, {~0ull, 9, ~0u}},
                  {0, 1, 4, 4, 2, 0, 1, 2, 3});
        simt_count_unique(1);
        simt_counters_reset();
        step.run();
        if (!simt_counts()) return;
        uint64_t reads = 0, writes = 0;
        simt_region_counters(step.weights.data(), &reads, &writes);
        EXPECT_EQUAL(reads, 3u * kDim * 4);
        EXPECT_EQUAL(writes, 3u * kDim * 4);
        simt_region_counters(step.pooled.data(), &reads, &writes);
        EXPECT_EQUAL(reads, 9u * kDim * 4);
        EXPECT_EQUAL(writes, 0u);
        simt_region_counters(step.state.data(), &reads, &writes);
        EXPECT_EQUAL(reads, 3u * kLanes * 4);  // one broadcast a row on a GPU
        EXPECT_EQUAL(writes, 3u * 4);
        simt_region_counters(step.tags.data(), &reads, &writes);
        EXPECT_EQUAL(reads, 9u * 4);
    }
}

PLANT(a_row_past_the_table, {check::kAsan, "heap-buffer-overflow"}) {
    Step(4, {{4, 0, 0}, {~0ull, 1, ~0u}}, {0}).run();
}

PLANT(a_sample_past_the_gradient, {check::kAsan, "heap-buffer-overflow"}) {
    Step step(4, {{0, 0, 0}, {~0ull, 1, ~0u}}, {4});
    step.features[0].column = 4;
    step.run();
}

// Two parts that update one row: the sum of a run is in one part only.
PLANT(a_run_that_is_listed_twice, {check::kTsan, "data race"}) {
    Step(4, {{2, 0, 0}, {2, 1, 0}, {~0ull, 2, ~0u}}, {0, 1}).run();
}

CHECK_MAIN
