// Updates move the bytes that their head comments say: of every touched row once in and once out,
// of every other row nothing, however many rows the table has.
#include "bytes.h"

#include "runs.cu"
#include "update.cu"
#include "update_pipeline.h"

namespace {

constexpr uint32_t kBatch = 9, kWidth = 704;

// A step of one table and one summed feature, with sorted lookups as a batch would leave them: runs
// of 1, 3, 2, 1 and 4 lookups, or with one of more than a chunk before.
struct Step {
    uint32_t dim, lanes, dtype, row_slots, element_slots, lookups = 0, count;
    uint64_t tags_of_row;  // bytes: a tag of each lookup for each block of columns
    check::Buffer<uint8_t> weights;
    check::Buffer<float> row_state, element_state, pooled{kBatch * kWidth, 0.25f};
    emb::Table table{};
    emb::RuleRecord record{};
    emb::Feature feature{};
    std::vector<emb::Run> runs;
    std::vector<uint64_t> offsets;
    check::Buffer<uint32_t> tags;
    emb::Launch shape;

    static std::vector<uint32_t> lengths(bool longs) {
        return longs ? std::vector<uint32_t>{2, 2049, 5} : std::vector<uint32_t>{1, 3, 2, 1, 4};
    }
    static uint32_t sum(const std::vector<uint32_t>& lengths) {
        uint32_t all = 0;
        for (const uint32_t length : lengths) all += length;
        return all;
    }

    Step(uint64_t rows, uint32_t dim, uint32_t dtype, uint32_t row_slots, uint32_t element_slots,
         bool longs = false)
        : dim(dim), lanes(dim <= 16 ? 4 : dim <= 32 ? 8 : dim <= 64 ? 16 : 32), dtype(dtype),
          row_slots(row_slots), element_slots(element_slots),
          count(static_cast<uint32_t>(lengths(longs).size())),
          weights(rows * dim * emb::element_bytes(dtype)), row_state(rows * row_slots, 1.0f),
          element_state(rows * element_slots * dim, 1.0f), offsets(kBatch + 1),
          tags(sum(lengths(longs))) {
        table.weights = weights.data();
        table.row_state = row_state.data();
        table.element_state = element_state.data();
        table.rows = rows;
        table.row_step = 1;
        table.dim = table.table_dim = feature.dim = dim;
        table.dtype = dtype;
        table.row_slots = row_slots;
        table.element_slots = element_slots;
        record.max_gradient = INFINITY;
        uint64_t row = 1;
        for (const uint32_t length : lengths(longs)) {
            runs.push_back({row, lookups, 0});
            lookups += length;
            row += 2;
        }
        runs.push_back({~0ull, lookups, ~0u});
        for (uint32_t k = 0; k < lookups; ++k) tags[k] = k % kBatch;
        const uint32_t block = dim % 4 == 0 ? 4 * lanes : lanes;
        tags_of_row = 4 * ((dim + block - 1) / block);
        shape = emb::Launch{kWidth, (dim + 3) / 4 * 4, 1, kBatch, 0, lanes, (dim + 3) / 4 * 4};
    }

    template <typename R> void use(const R& rule) { std::memcpy(record.rule, &rule, sizeof rule); }
    uint64_t weight_bytes() const { return uint64_t(count) * dim * emb::element_bytes(dtype); }

    // `rows` are sums of chunks or, with `sum_offsets`, of runs.
    void update(const std::string& rule, const float* rows = nullptr,
                const uint64_t* sum_offsets = nullptr, const double* totals = nullptr) {
        static const char* const kTypes[] = {"f32", "f16", "bf16"};
        const bool fits = shape.stage_stride <= emb::kStage;
        std::vector<emb::Float4> far(fits ? 0 : 2 * 128 / lanes * shape.stage_stride / 4);
        const bool sums = sum_offsets != nullptr;
        const std::string kernel = "emb_update_" + rule + "_" + kTypes[dtype];
        launch(kernel.c_str(), 2, 128, &table, &record, runs.data(), &count,
               sums ? nullptr : tags.data(), none<emb::Source>(), &feature, offsets.data(),
               none<emb::Sequence>(), sums ? nullptr : pooled.data(), rows, sum_offsets, totals,
               fits ? nullptr : &far[0].v[0], shape);
    }
};

// Every rule with the options that change what it moves.
struct Case {
    const char* name;
    uint32_t row_slots, element_slots;
    bool decay;  // the statistic needs the weights
    void (*use)(Step&);
};
const Case kCases[] = {
    {"sgd", 0, 0, false, [](Step& s) { s.use(emb::Sgd{0.1f, 1.0f, INFINITY}); }},
    {"sgd", 0, 0, false, [](Step& s) { s.use(emb::Sgd{0.1f, 0.9f, 0.01f}); }},  // a bounded norm
    {"adagrad", 0, 1, false,
     [](Step& s) { s.use(emb::AdaGrad{0.1f, 1e-8f, 0.1f, 1.0f, 1.0f, INFINITY, 0}); }},
    {"adagrad", 0, 2, false,
     [](Step& s) { s.use(emb::AdaGrad{0.1f, 1e-8f, 0.0f, 1.0f, 1.0f, INFINITY, 1}); }},
    {"row_wise_adagrad", 1, 0, false,
     [](Step& s) { s.use(emb::RowWiseAdaGrad{1.0, 0.1f, 1e-8f, 0.0f, 1.0f, INFINITY, 0}); }},
    {"row_wise_adagrad", 2, 0, true,
     [](Step& s) { s.use(emb::RowWiseAdaGrad{1.0, 0.1f, 1e-8f, 0.1f, 1.0f, INFINITY, 1}); }},
    {"adam", 0, 2, false,
     [](Step& s) {
         s.use(emb::Adam{0.1f, 1.0f, 0.9f, 0.1f, 0.99f, 0.01f, 1e-8f, 0.1f, 1.0f, INFINITY});
     }},
    {"row_wise_adam", 1, 1, false,
     [](Step& s) {
         s.use(emb::RowWiseAdam{0.99, 0.01, 0.1f, 1.0f, 0.9f, 0.1f, 1e-8f, 0.0f, 1.0f, INFINITY});
     }},
    {"row_wise_adam", 1, 1, true,
     [](Step& s) {
         s.use(emb::RowWiseAdam{0.99, 0.01, 0.1f, 1.0f, 0.9f, 0.1f, 1e-8f, 0.1f, 1.0f, INFINITY});
     }},
};

// What a step has moved of the table. Every lane reads the state of the row: one broadcast on a GPU.
void expect_rows(Step& step, uint32_t weights_read) {
    EXPECT_MOVED(step.weights, weights_read * step.weight_bytes(), step.weight_bytes());
    const uint64_t row_state = 4ull * step.count * step.row_slots;
    EXPECT_MOVED(step.row_state, step.lanes * row_state, row_state);
    const uint64_t element_state = 4ull * step.count * step.element_slots * step.dim;
    EXPECT_MOVED(step.element_state, element_state, element_state);
}

void updates(const Case& rule, uint64_t rows, uint32_t dim, uint32_t dtype, bool stochastic) {
    Step step(rows, dim, dtype, rule.row_slots, rule.element_slots);
    rule.use(step);
    step.table.stochastic = stochastic;
    bytes::reset();
    step.update(rule.name);
    expect_rows(step, rule.decay ? 2 : 1);
    EXPECT_MOVED(step.pooled, 4ull * step.lookups * dim, 0);
    EXPECT_MOVED(step.tags, step.lookups * step.tags_of_row, 0);
}

uint64_t no_offset = 0;  // sums of the runs of the only table begin at the first

}  // namespace

TEST(an_update_moves_each_touched_row_once_whatever_the_rows_of_the_table) {
    for (const Case& rule : kCases) {
        for (uint32_t dtype = 0; dtype < 3; ++dtype) {
            for (const uint32_t dim : {6u, 16u, 128u}) {
                updates(rule, 12, dim, dtype, dtype > 0 && dim != 16);
                updates(rule, 1200, dim, dtype, dtype > 0 && dim != 16);
            }
            updates(rule, 12, 700, dtype, false);
        }
    }
}

TEST(an_update_from_sums_reads_them_once_and_no_gradient) {
    for (const Case& rule : kCases) {
        for (uint32_t dtype = 0; dtype < 3; ++dtype) {
            Step step(12, 20, dtype, rule.row_slots, rule.element_slots);
            rule.use(step);
            check::Buffer<float> sums(step.count * 20, 0.5f);
            check::Buffer<double> totals(step.count, 2.0);
            bytes::reset();
            step.update(rule.name, sums, &no_offset, totals);
            expect_rows(step, 1);
            EXPECT_MOVED(sums, 4 * 20 * step.count, 0);
            const bool measures = std::string(rule.name).find("row_wise") == 0;
            EXPECT_MOVED(totals, measures ? 8 * step.lanes * step.count : 0, 0);
        }
    }
}

TEST(statistics_read_sums_once_and_weights_with_decay_alone) {
    for (const Case& rule : kCases) {
        for (uint32_t dtype = 0; dtype < 3; ++dtype) {
            for (const uint32_t dim : {6u, 128u}) {
                Step step(12, dim, dtype, rule.row_slots, rule.element_slots);
                rule.use(step);
                check::Buffer<float> sums(step.count * dim, 0.5f);
                check::Buffer<double> statistics(step.count);
                const std::string kernel = std::string("emb_statistics_") + rule.name;
                if (kernel.find("row_wise") == std::string::npos) continue;
                bytes::reset();
                launch(kernel.c_str(), 2, 128, &step.table, &step.record, step.runs.data(),
                       &step.count, static_cast<const float*>(sums.data()), &no_offset,
                       statistics.data(), step.shape);
                EXPECT_MOVED(step.weights, rule.decay ? step.weight_bytes() : 0, 0);
                EXPECT_MOVED(sums, 4 * dim * step.count, 0);
                EXPECT_MOVED(statistics, 0, 8 * step.count);
            }
        }
    }
}

// With a run of two chunks, which is added up from their sums.
TEST(sums_of_chunks_and_runs_read_each_gradient_once) {
    for (const uint32_t dim : {6u, 64u, 136u, 200u}) {
        Step step(12, dim, emb::kF32, 0, 0, true);
        step.use(emb::Sgd{0.1f, 1.0f, INFINITY});
        const uint32_t slots = 2 * (step.lookups / emb::kChunk + 1), stride = step.shape.rows_stride;
        check::Buffer<emb::Chunk> chunks(slots);
        check::Buffer<float> rows(slots * stride), sums(step.count * dim);
        check::Buffer<emb::Source> sources(step.lookups, emb::Source{1, 0.5f});
        LAUNCH(emb_long_runs, 1, 256, 0, step.runs.data(), &step.count, chunks);
        uint64_t in_chunks = 0, filled = 0;
        for (const emb::Chunk& chunk : chunks) {
            in_chunks += chunk.end - chunk.begin;
            filled += chunk.end > chunk.begin;
        }
        EXPECT_EQUAL(filled, 2u);
        for (const emb::Source* from : {none<emb::Source>(), (const emb::Source*)sources.data()}) {
            bytes::reset();
            LAUNCH(emb_chunk_sums, 2, 128, 0, &step.table, &step.record, chunks, slots, step.tags,
                   from, &step.feature, step.offsets.data(), nullptr, step.pooled, rows,
                   step.shape);
            EXPECT_MOVED(step.pooled, 4 * in_chunks * dim, 0);
            EXPECT_MOVED(step.tags, in_chunks * step.tags_of_row, 0);
            EXPECT_MOVED(sources, from ? 2 * in_chunks * step.tags_of_row : 0, 0);
            EXPECT_MOVED(rows, 0, 4 * filled * dim);
            bytes::reset();
            LAUNCH(emb_run_sums, 2, 128, 0, &step.table, &step.record, step.runs.data(),
                   &step.count, step.tags, from, &step.feature, step.offsets.data(), nullptr,
                   step.pooled, rows, &no_offset, sums, step.shape);
            const uint64_t alone = step.lookups - in_chunks;
            EXPECT_MOVED(step.pooled, 4 * alone * dim, 0);
            EXPECT_MOVED(step.tags, alone * step.tags_of_row, 0);
            EXPECT_MOVED(sources, from ? 2 * alone * step.tags_of_row : 0, 0);
            EXPECT_MOVED(rows, 4 * filled * dim, 0);
            EXPECT_MOVED(sums, 0, 4 * step.count * dim);
        }
        bytes::reset();
        step.update("sgd", rows);
        expect_rows(step, 1);
        EXPECT_MOVED(rows, 4 * filled * dim, 0);
    }
}

CHECK_MAIN
