// Kernels that fill, check and list rows of tables move the bytes that their head comments say; so
// do the gradients of per-sample weights.
#include "bytes.h"

#include "ids.cu"
#include "init.cu"
#include "rows.cu"
#include "weights.cu"

#include <set>

namespace {

constexpr uint32_t kDtypes[] = {emb::kF32, emb::kF16, emb::kBf16};

// Rows that are numbered, some of them twice.
struct Numbered {
    static constexpr uint64_t kRows = 60, kPlaces = 128;
    check::Buffer<uint64_t> numbers{kRows};
    check::Buffer<unsigned long long> keys{kPlaces}, last{kPlaces};
    uint64_t distinct;

    Numbered() {
        check::Random random(6);
        for (uint64_t& number : numbers) number = random.below(40);
        distinct = std::set<uint64_t>(numbers.begin(), numbers.end()).size();
    }
    void find() {
        LAUNCH(emb_find_last_rows, 1, 256, 0, numbers, kRows, keys, last, kPlaces - 1);
    }
};

// A step's features: a sum, a mean and a sequence of one table.
struct Weighed {
    static constexpr uint32_t kBatch = 20, kDim = 37;
    std::vector<uint64_t> bounds = bytes::offsets(3 * kBatch, 7);
    uint64_t pooled = bounds[2 * kBatch], count = bounds[3 * kBatch];
    uint64_t summed = bounds[kBatch];
    check::Buffer<uint64_t> offsets{bounds};
    check::Buffer<int64_t> values{std::vector<int64_t>(count, 0)};
    check::Buffer<float> weights{count, 0.5f}, gradient{kBatch * 2 * kDim, 0.5f}, out{count};
    std::vector<emb::Feature> features{3};
    check::Buffer<uint8_t> table;

    uint64_t pooled_bags() const {  // that are not empty
        uint64_t bags = 0;
        for (uint32_t bag = 0; bag < 2 * kBatch; ++bag) bags += bounds[bag + 1] > bounds[bag];
        return bags;
    }
    Weighed(uint32_t dtype, uint64_t rows) : table(rows * kDim * emb::element_bytes(dtype)) {
        check::Random random(8);
        for (int64_t& value : values) value = static_cast<int64_t>(random.below(9));
        for (uint32_t f = 0; f < 3; ++f) {
            features[f].pooling = f == 0 ? emb::kSum : f == 1 ? emb::kMean : emb::kNone;
            features[f].column = f == 1 ? kDim : 0;
            features[f].dim = kDim;
            features[f].dtype = dtype;
            features[f].weights = table.data();
        }
    }
};

}  // namespace

TEST(initial_weights_are_written_once_and_numbers_read) {
    for (const uint32_t dtype : kDtypes) {
        for (const uint32_t dim : {3u, 8u, 130u}) {
            const uint64_t rows = 6, row_bytes = dim * emb::element_bytes(dtype);
            check::Buffer<uint8_t> weights(9 * row_bytes);
            check::Buffer<uint64_t> numbers(std::vector<uint64_t>{5, 9, 13, 20, 70, 71});
            emb::Table table{};
            table.weights = weights.data();
            table.dim = dim;
            table.dtype = dtype;
            table.row_step = 1;
            table.first_column = 5;
            const uint64_t counters = (5 + dim - 1) / 4 - 5 / 4 + 1;
            for (const bool numbered : {false, true}) {
                bytes::reset();
                LAUNCH(emb_init_weights, 2, 256, 0, &table, 0,
                       numbered ? numbers.data() : nullptr, 2, rows, 1, 2, 0.0f, 1.0f, 1.0f);
                EXPECT_MOVED(weights, 0, rows * row_bytes);
                EXPECT_MOVED(numbers, numbered ? 8 * rows * counters : 0, 0);
                EXPECT_TOUCHED("emb_init_weights", numbered ? 8 * rows : 0, rows * row_bytes);
            }
        }
    }
}

TEST(initial_state_is_written_once) {
    check::Buffer<float> state(7 * 24);
    bytes::reset();
    LAUNCH(emb_init_state, 1, 256, 0, state + 8, 7, 5, 24, 0.1f);
    EXPECT_MOVED(state, 0, 4 * 7 * 5);
}

TEST(the_last_of_equal_rows_is_found_with_8_bytes_a_row_and_16_a_distinct_one) {
    Numbered rows;
    bytes::reset();
    rows.find();
    EXPECT_MOVED(rows.numbers, 8 * rows.kRows, 0);
    EXPECT_TOUCHED("emb_find_last_rows", 8 * rows.kRows + 16 * rows.distinct, 16 * rows.distinct);
}

// Weights of 16 bits and a slot of state, in both orders of the buffer.
TEST(rows_by_number_move_each_element_once) {
    const uint32_t dim = 40, slot = 5, elements = dim + slot;
    Numbered rows;
    rows.find();
    check::Buffer<uint16_t> weights(40 * dim);
    check::Buffer<float> state(40 * slot), buffer(rows.kRows * elements);
    const std::vector<emb::RowPart> parts{{weights, dim, dim, emb::kBf16, 0, 0},
                                          {state, slot, slot, emb::kF32, dim, 0}};
    for (const uint32_t whole : {elements, 0u}) {
        bytes::reset();
        LAUNCH(emb_read_rows, 2, 256, 0, parts.data(), 2, rows.numbers, 0, rows.kRows, whole,
               buffer);
        EXPECT_MOVED(weights, 2 * dim * rows.kRows, 0);
        EXPECT_MOVED(state, 4 * slot * rows.kRows, 0);
        EXPECT_MOVED(buffer, 0, 4 * elements * rows.kRows);
        EXPECT_TOUCHED("emb_read_rows",
                       8 * rows.kRows + (2 * dim + 4 * slot) * rows.distinct,
                       4 * elements * rows.kRows);
        bytes::reset();
        LAUNCH(emb_write_rows, 2, 256, 0, parts.data(), 2, rows.numbers, 0, rows.kRows, whole,
               rows.keys, rows.last, rows.kPlaces - 1, buffer);
        EXPECT_MOVED(weights, 0, 2 * dim * rows.distinct);
        EXPECT_MOVED(state, 0, 4 * slot * rows.distinct);
        EXPECT_MOVED(buffer, 4 * elements * rows.distinct, 0);
        EXPECT_TOUCHED("emb_write_rows",
                       8 * rows.kRows + (16 + 4 * elements) * rows.distinct,
                       (2 * dim + 4 * slot) * rows.distinct);
    }
}

TEST(a_batch_is_described_by_its_features_alone) {
    const uint32_t features = 70, batch = 5;
    check::Buffer<uint64_t> offsets(bytes::offsets(features * batch, 2)), starts(features + 1);
    check::Buffer<emb::Feature> described(features);
    check::Buffer<unsigned long long> report(6);
    uint64_t sequences = 0;
    for (uint32_t f = 0; f < features; ++f) {
        described[f].pooling = f % 3 == 0 ? emb::kNone : emb::kSum;
        sequences += f % 3 == 0;
    }
    bytes::reset();
    LAUNCH(emb_describe_batch, 1, 32, 0, described, features, offsets, batch, 0, features, report,
           starts);
    EXPECT_MOVED(described, 4 * (features + sequences), 0);
    EXPECT_MOVED(offsets, 16 * sequences + 32, 0);
    EXPECT_MOVED(starts, 0, 8 * (features + 1));
    EXPECT_MOVED(report, 0, 48);
}

// The table's rows do not count: only those that are looked up.
TEST(gradients_of_weights_read_each_row_once) {
    for (const uint64_t rows : {9, 900}) {
        for (const uint32_t dtype : kDtypes) {
            Weighed w(dtype, rows);
            const uint64_t averaged = w.pooled - w.summed;
            bytes::reset();
            LAUNCH(emb_weight_gradients, 2, 256, 0, w.features.data(), 3, w.offsets, w.kBatch,
                   w.values, w.weights, w.gradient, 2 * w.kDim, w.out);
            EXPECT_MOVED(w.table, w.pooled * w.kDim * emb::element_bytes(dtype), 0);
            EXPECT_MOVED(w.gradient, w.pooled * w.kDim * 4, 0);
            EXPECT_MOVED(w.out, 4 * averaged, 4 * (w.count + averaged));
            EXPECT_MOVED(w.values, 8 * 8 * w.pooled, 0);
            EXPECT_MOVED(w.weights, 8 * 4 * w.pooled, 0);
            EXPECT_MOVED(w.offsets, 8 * 16 * 3 * w.kBatch, 0);
            // Eight lanes share an id, and the ids of a bag its gradient: of these each byte once.
            const auto pooled = w.values.begin() + w.pooled;
            const uint64_t distinct = std::set<int64_t>(w.values.begin(), pooled).size();
            const uint64_t row = w.kDim * emb::element_bytes(dtype), bags = w.kBatch;
            EXPECT_TOUCHED("emb_weight_gradients",
                           distinct * row + 12 * w.pooled + 8 * (3 * bags + 1) + 4 * averaged +
                               4 * w.kDim * w.pooled_bags(),
                           4 * w.count);
        }
    }
}

CHECK_MAIN
