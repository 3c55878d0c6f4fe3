// An update is what plain loops do, bit for bit: every rule, option, type of weights and pooling.
#include "keys.cu"
#include "runs.cu"
#include "sort.cu"
#include "update.cu"
#include "update_case.h"

#include <algorithm>
#include <tuple>

namespace {

constexpr uint64_t kRows = 12;
constexpr uint64_t kStep = (5ull << 32) + 77;
constexpr uint64_t kFirstRow = (1ull << 33) + 5, kRowStep = 3;
constexpr uint32_t kFirstColumn = 21;

template <typename R> std::vector<unsigned char> bytes_of(const R& rule) {
    std::vector<unsigned char> out(sizeof(R));
    std::memcpy(out.data(), &rule, sizeof(R));
    return out;
}

std::vector<RuleCase> rules(const Options& o) {
    const float scale = static_cast<float>(o.square_scale), beta2 = static_cast<float>(o.beta2),
                gain2 = static_cast<float>(o.gain2);
    const uint32_t sums = o.history ? 2 : 1;
    return {
        {"sgd", 0, 0, false, step_sgd, bytes_of(emb::Sgd{o.lr, o.keep, o.longest})},
        {"adagrad", 0, sums, false, step_adagrad,
         bytes_of(emb::AdaGrad{o.lr, o.eps, o.l2, o.keep, scale, o.longest, o.history})},
        {"row_wise_adagrad", sums, 0, true, step_row_wise_adagrad,
         bytes_of(emb::RowWiseAdaGrad{o.square_scale, o.lr, o.eps, o.l2, o.keep, o.longest,
                                      o.history})},
        {"adam", 0, 2, false, step_adam,
         bytes_of(emb::Adam{o.step_size, o.root_scale, o.beta1, o.gain1, beta2, gain2, o.eps, o.l2,
                            o.keep, o.longest})},
        {"row_wise_adam", 1, 1, true, step_row_wise_adam,
         bytes_of(emb::RowWiseAdam{o.beta2, o.gain2, o.step_size, o.root_scale, o.beta1, o.gain1,
                                   o.eps, o.l2, o.keep, o.longest})},
    };
}

template <typename T> emb::Dtype dtype();
template <> emb::Dtype dtype<float>() { return emb::kF32; }
template <> emb::Dtype dtype<__half>() { return emb::kF16; }
template <> emb::Dtype dtype<__nv_bfloat16>() { return emb::kBf16; }

template <typename T>
std::vector<emb::Table> described(std::vector<TestTable<T>>& tables, const Setting& setting) {
    std::vector<emb::Table> out;
    for (TestTable<T>& table : tables) {
        emb::Table t{};
        t.weights = table.weights.data();
        t.row_state = table.row_state.data();
        t.element_state = table.element_state.data();
        t.rows = kRows;
        t.first_key = out.size() * kRows;
        t.first_row = kFirstRow;
        t.row_step = kRowStep;
        t.dim = table.dim;
        t.dtype = dtype<T>();
        t.row_slots = table.row_slots;
        t.element_slots = table.element_slots;
        t.first_column = kFirstColumn;
        t.table_dim = table.dim + kFirstColumn;
        t.stochastic = setting.stochastic;
        t.rounding_key[0] = 11;
        t.rounding_key[1] = static_cast<uint32_t>(out.size());
        out.push_back(t);
    }
    return out;
}

// The step by plain loops; table `spared` belongs to another launch.
template <typename T>
void step_by_loops(std::vector<TestTable<T>>& tables, const TestBatch& batch,
                   const Setting& setting, const RuleCase& rule, size_t spared) {
    for (const auto& [key, rows] : contributions(batch, setting)) {
        const size_t t = key / kRows;
        if (t == spared) {
            continue;
        }
        TestTable<T>& table = tables[t];
        const uint64_t row = key % kRows;
        const uint32_t dim = table.dim, width = table.element_slots * dim;
        const std::vector<float> g = added(rows, rows.size() > emb::kChunk ? emb::kChunk : ~0u);
        std::vector<float> w;
        for (uint32_t i = 0; i < dim; ++i) {
            w.push_back(emb::load(table.weights[row * dim + i]));
        }
        float* const rs = table.row_state.data() + row * table.row_slots;
        float* const es = table.element_state.data() + row * width;
        RowState state{{rs, rs + table.row_slots}, {es, es + width}};
        const double mean =
            rule.measures ? measured(setting.options, w, g) / (dim + kFirstColumn) : 0.0;
        rule.step(setting.options, w, state, g, mean);
        limit(w, setting.options.longest);
        std::copy(state.row.begin(), state.row.end(), rs);
        std::copy(state.element.begin(), state.element.end(), es);
        for (uint32_t i = 0; i < dim; ++i) {
            const emb::Key random{11, static_cast<uint32_t>(t)};
            const uint16_t bits =
                emb::rounding_bits(random, kFirstRow + row * kRowStep, kStep, kFirstColumn + i);
            table.weights[row * dim + i] =
                setting.stochastic ? emb::stochastic<T>(w[i], bits) : stored<T>(w[i]);
        }
    }
}

uint32_t lanes_of(const std::vector<uint32_t>& dims) {
    uint32_t lanes = 4;
    for (const uint32_t dim : dims) {
        while (lanes < 32 && 4 * lanes < dim) {
            lanes *= 2;
        }
    }
    return lanes;
}

// As sort_pairs, which starts 65,536 threads for these few pairs, does. Its own tests are sort.cpp.
void sort_by_loops(std::vector<uint64_t>& keys, std::vector<uint32_t>& tags) {
    std::vector<std::pair<uint64_t, uint32_t>> pairs;
    for (size_t i = 0; i < keys.size(); ++i) {
        pairs.push_back({keys[i], tags[i]});
    }
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < keys.size(); ++i) {
        std::tie(keys[i], tags[i]) = pairs[i];
    }
}

template <typename T>
void updates(const char* type, const Setting& setting, const RuleCase& rule, bool two_phases) {
    std::mt19937 random(99);
    std::vector<TestTable<T>> tables;
    for (const uint32_t dim : setting.dims) {
        tables.emplace_back(dim, kRows, rule, random);
    }
    const TestBatch batch = make_batch(setting, kRows, random);
    auto wanted = tables;
    const size_t spared = setting.dims.size() > 1 ? 1 : ~0ull;
    step_by_loops(wanted, batch, setting, rule, spared);

    // The launches of src/cuda/update.rs.
    const std::vector<emb::Table> on_device = described(tables, setting);
    std::vector<emb::RuleRecord> records(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
        records[t].group = t == spared ? 4 : 3;
        records[t].max_gradient = setting.max_gradient;
        std::memcpy(records[t].rule, rule.bytes.data(), rule.bytes.size());
    }
    const uint32_t count = static_cast<uint32_t>(batch.values.size());
    const uint32_t bags = batch.features * batch.batch;
    std::vector<uint64_t> keys(count);
    std::vector<uint32_t> tags(count);
    std::vector<emb::Source> sources(setting.direct ? 0 : count);
    std::vector<float> totals(bags);
    const float* const weights = setting.weighted ? batch.weights.data() : nullptr;
    if (setting.weighted) {
        launch("emb_bag_totals", 1, 256, batch.offsets.data(), bags, count, weights,
               totals.data());
    }
    launch("emb_keys", (count + 1023) / 1024, 256, batch.described.data(), batch.offsets.data(),
           batch.batch, bags, batch.values.data(), count, weights,
           static_cast<const float*>(setting.weighted ? totals.data() : nullptr), keys.data(),
           tags.data(), setting.direct ? nullptr : sources.data());
    // Where weights are f32 all is done as on the device.
    if (std::is_same_v<T, float>) {
        sort_pairs(keys, tags, 8);
    } else {
        sort_by_loops(keys, tags);
    }
    const Runs found = find_runs(keys, on_device);
    const uint32_t slots = 2 * (count / emb::kChunk + 1);
    std::vector<emb::Chunk> chunks(slots);
    launch("emb_long_runs", 1, 256, found.runs.data(), &found.count, chunks.data());
    std::vector<emb::Sequence> sequences;
    for (size_t s = 0; s < batch.sequences.size(); ++s) {
        sequences.push_back({batch.sequences[s].data(), batch.described.back().dim});
    }
    uint32_t widest = 0;
    for (const uint32_t dim : setting.dims) {
        widest = dim > widest ? dim : widest;
    }
    const uint32_t stride = (widest + 3) / 4 * 4, lanes = lanes_of(setting.dims);
    std::vector<emb::Float4> rows(slots * stride / 4);
    float* const chunk_sums = &rows[0].v[0];
    const emb::Launch shape{batch.width, stride, kStep, batch.batch, 3, lanes, stride};
    const emb::Source* const from = setting.direct ? nullptr : sources.data();
    launch("emb_chunk_sums", 2, 128, on_device.data(), records.data(), chunks.data(), slots,
           tags.data(), from, batch.described.data(), batch.offsets.data(), sequences.data(),
           batch.pooled.data(), chunk_sums, shape);
    const unsigned blocks = 2;
    std::vector<emb::Float4> far(blocks * 128 / lanes * stride / 4);
    const std::string kernel = std::string("emb_update_") + rule.name + "_" + type;
    float* const stages = stride > emb::kStage ? &far[0].v[0] : nullptr;
    if (!two_phases) {
        launch(kernel.c_str(), blocks, 128, on_device.data(), records.data(), found.runs.data(),
               &found.count, tags.data(), from, batch.described.data(), batch.offsets.data(),
               sequences.data(), batch.pooled.data(), static_cast<const float*>(chunk_sums),
               none<uint64_t>(), none<double>(), stages, shape);
    } else {
        std::vector<uint32_t> firsts(tables.size() + 1);
        launch("emb_table_runs", 1, 256, found.runs.data(), &found.count,
               static_cast<uint32_t>(tables.size()), firsts.data());
        std::vector<uint64_t> sum_offsets;
        uint64_t base = 0;
        for (size_t t = 0; t < tables.size(); ++t) {
            sum_offsets.push_back(base - static_cast<uint64_t>(firsts[t]) * tables[t].dim);
            base += ((firsts[t + 1] - firsts[t]) * tables[t].dim + 3) / 4 * 4;
        }
        std::vector<emb::Float4> sum_memory(base / 4 + 1);
        float* const sums = &sum_memory[0].v[0];
        std::vector<double> statistics(found.count);
        launch("emb_run_sums", blocks, 128, on_device.data(), records.data(), found.runs.data(),
               &found.count, tags.data(), from, batch.described.data(), batch.offsets.data(),
               sequences.data(), batch.pooled.data(), static_cast<const float*>(chunk_sums),
               sum_offsets.data(), sums, shape);
        launch((std::string("emb_statistics_") + rule.name).c_str(), blocks, 128, on_device.data(),
               records.data(), found.runs.data(), &found.count, static_cast<const float*>(sums),
               sum_offsets.data(), statistics.data(), shape);
        launch(kernel.c_str(), blocks, 128, on_device.data(), records.data(), found.runs.data(),
               &found.count, none<uint32_t>(), none<emb::Source>(), none<emb::Feature>(),
               none<uint64_t>(), none<emb::Sequence>(), none<float>(),
               static_cast<const float*>(sums), sum_offsets.data(),
               static_cast<const double*>(statistics.data()), stages, shape);
    }
    for (size_t t = 0; t < tables.size(); ++t) {
        EXPECT_ALL_EQUAL(tables[t].weights, wanted[t].weights);
        EXPECT_ALL_EQUAL(tables[t].row_state, wanted[t].row_state);
        EXPECT_ALL_EQUAL(tables[t].element_state, wanted[t].element_state);
    }
}

void all_types(const Setting& setting, bool two_phases = false, const char* only = nullptr) {
    for (const RuleCase& rule : rules(setting.options)) {
        if (only && std::strcmp(only, rule.name) != 0) {
            continue;
        }
        updates<float>("f32", setting, rule, two_phases);
        updates<__half>("f16", setting, rule, two_phases);
        updates<__nv_bfloat16>("bf16", setting, rule, two_phases);
    }
}

}  // namespace

TEST(rules_step_as_plain_loops_in_one_phase_and_in_two) {
    Setting setting;
    all_types(setting);
    all_types(setting, true);
    check::for_each_schedule([&] { all_types(setting, false, "row_wise_adam"); });
}

TEST(decay_limits_history_weights_and_stochastic_rounding) {
    Setting setting;
    setting.options = {0.05f, 0.0f, 0.1f, 0.9f, 0.02f, 1.5f, 0.9f,
                       0.1f,  0.5f, 0.99, 0.01, 0.25,  true};
    setting.max_gradient = 0.75f;
    setting.stochastic = true;
    setting.weighted = true;
    all_types(setting);
}

TEST(tags_are_bags_where_all_is_summed) {
    Setting setting;
    setting.direct = true;
    setting.dims = {16, 4};
    all_types(setting);
}

TEST(long_runs_are_summed_by_chunks) {
    Setting setting;
    setting.hot = true;
    setting.direct = true;
    setting.dims = {12};
    all_types(setting, false, "row_wise_adagrad");
    all_types(setting, true, "row_wise_adagrad");
}

TEST(rows_of_more_than_a_stage) {
    Setting setting;
    setting.dims = {64, 130, 601};
    setting.batch = 3;
    setting.stochastic = true;
    all_types(setting);
}

CHECK_MAIN
