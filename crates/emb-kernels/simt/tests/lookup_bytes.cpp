// Lookups move the bytes that their head comments say, and defects in what they are given are
// caught.
#include "lookup_case.h"

#include "gather.cu"
#include "ids.cu"
#include "lookup.cu"
#include "rows.cu"

using namespace testing;

namespace {

struct Bytes {
    uint64_t reads = 0, writes = 0;
};

Bytes bytes_of(const void* start) {
    Bytes bytes;
    simt_region_counters(start, &bytes.reads, &bytes.writes);
    return bytes;
}

// One table and one feature of it, all in memory that is counted.
struct Counted {
    Batch b;
    check::Buffer<float> weights;
    check::Buffer<uint16_t> half;
    check::Buffer<emb::Feature> features;
    check::Buffer<uint64_t> offsets;
    check::Buffer<int64_t> values;
    check::Buffer<float> scales;
    check::Buffer<float> out;
    uint64_t ids, row_bytes;

    static Batch batch(uint32_t dim, uint32_t dtype, uint32_t pooling, uint64_t samples, bool scaled,
                       uint64_t times) {
        check::Random random(dim);
        Batch b;
        b.tables.push_back(make_table(random, dim, dtype, 50));
        add_feature(b, 0, pooling);
        fill_bags(b, random, samples, 9, scaled);
        b.tables[0].rows *= times;
        b.tables[0].f32.resize(b.tables[0].f32.size() * times);
        b.tables[0].half.resize(b.tables[0].half.size() * times);
        return b;
    }
    // A table of 50 rows, or of `times` as many with the same lookups.
    Counted(uint32_t dim, uint32_t dtype, uint32_t pooling, uint64_t samples, bool scaled,
            uint64_t times = 1)
        : b(batch(dim, dtype, pooling, samples, scaled, times)), weights(b.tables[0].f32),
          half(b.tables[0].half), features(b.features), offsets(b.offsets), values(b.values),
          scales(b.weights), out((pooling == emb::kNone ? values.size() : samples) * dim),
          ids(values.size()), row_bytes(dim * emb::element_bytes(dtype)) {
        features[0].weights = dtype == emb::kF32 ? (const void*)weights.data() : half.data();
        b.features[0].weights = features[0].weights;
    }
    const void* table() const { return features[0].weights; }

    // Returns the tiles of a row.
    uint32_t pool(uint32_t chunk) {
        const check::Buffer<emb::Slot> all(slots(b));
        const uint64_t blocks = (b.batch + 32 * chunk - 1) / (32 * chunk);
        LAUNCH(emb_pool, (unsigned)((blocks * all.size() + 7) / 8), 256, 0, features, &all[0],
               (uint32_t)all.size(), offsets, values, scales.size() ? scales.data() : nullptr, out,
               b.width, b.batch, chunk);
        const emb::Feature& feature = features[0];
        return emb::row_shape((uint64_t)feature.weights, feature.dim, feature.dtype).tiles;
    }
    void gather() {
        LAUNCH(emb_gather, (unsigned)(ids / 8 + 1), 256, 0, features, 0, 1, offsets, b.batch, values,
               nullptr, out, features[0].dim, 8);
    }
};

}  // namespace

TEST(a_pooled_lookup_reads_a_row_for_each_id_and_writes_each_output_once) {
    const uint32_t dims[] = {1, 16, 33, 64, 100, 256, 1024};
    for (uint32_t i = 0; i < 7; ++i) {
        const uint32_t chunk = 1u << i % 4;
        const uint64_t samples = 37;
        const bool scaled = i % 2 == 1;
        Counted counted(dims[i], i % 3, i % 2 ? emb::kMean : emb::kSum, samples, scaled);
        simt_counters_reset();
        const uint64_t tiles = counted.pool(chunk);
        if (!simt_counts()) return;
        const uint64_t groups = (samples + chunk - 1) / chunk;
        EXPECT_EQUAL(bytes_of(counted.table()).reads, counted.ids * counted.row_bytes);
        EXPECT_EQUAL(bytes_of(counted.table()).writes, 0u);
        EXPECT_EQUAL(bytes_of(counted.values).reads, 8 * counted.ids * tiles);
        EXPECT_EQUAL(bytes_of(counted.offsets).reads, 8 * (samples + groups) * tiles);
        if (scaled) EXPECT_EQUAL(bytes_of(counted.scales).reads, 4 * counted.ids * tiles);
        EXPECT_EQUAL(bytes_of(counted.out).writes, samples * dims[i] * 4);
        EXPECT_EQUAL(bytes_of(counted.out).reads, 0u);
    }
}

TEST(a_gather_reads_each_row_once_and_writes_each_output_once) {
    for (const uint32_t dim : {1, 8, 33, 128, 1024}) {
        Counted counted(dim, dim % 3, emb::kNone, 20, false);
        simt_counters_reset();
        counted.gather();
        if (!simt_counts()) return;
        EXPECT_EQUAL(bytes_of(counted.table()).reads, counted.ids * counted.row_bytes);
        EXPECT_EQUAL(bytes_of(counted.values).reads, 8 * counted.ids);
        EXPECT_EQUAL(bytes_of(counted.out).writes, counted.ids * dim * 4);
        EXPECT_EQUAL(bytes_of(counted.out).reads, 0u);
    }
}

TEST(bytes_of_a_lookup_do_not_grow_with_the_rows_of_its_table) {
    const auto all = [](const char* kernel) {
        Bytes bytes;
        simt_counters(kernel, &bytes.reads, &bytes.writes);
        return bytes;
    };
    for (uint32_t dtype = 0; dtype < 3; ++dtype) {
        Bytes pooled[2], gathered[2];
        for (const uint32_t many : {0, 1}) {
            simt_counters_reset();
            Counted(100, dtype, emb::kMean, 37, true, many ? 100 : 1).pool(2);
            Counted(100, dtype, emb::kNone, 37, false, many ? 100 : 1).gather();
            pooled[many] = all("emb_pool");
            gathered[many] = all("emb_gather");
        }
        EXPECT_EQUAL(pooled[1].reads, pooled[0].reads);
        EXPECT_EQUAL(pooled[1].writes, pooled[0].writes);
        EXPECT_EQUAL(gathered[1].reads, gathered[0].reads);
        EXPECT_EQUAL(gathered[1].writes, gathered[0].writes);
        EXPECT(!simt_counts() || (pooled[0].reads > 0 && gathered[0].reads > 0));
    }
}

TEST(a_copy_of_rows_moves_each_element_once) {
    Counted counted(40, emb::kF16, emb::kNone, 20, false);
    check::Buffer<emb::RowPart> parts(1);
    parts[0] = emb::RowPart{const_cast<void*>(counted.table()), 40, 40, emb::kF16, 0, 0};
    check::Buffer<float> rows(7 * 40);
    simt_counters_reset();
    LAUNCH(emb_read_rows, 1, 256, 0, parts, 1, nullptr, 3, 7, 40, rows);
    if (!simt_counts()) return;
    EXPECT_EQUAL(bytes_of(counted.table()).reads, 7u * 80);
    EXPECT_EQUAL(bytes_of(rows).writes, 7u * 160);
    simt_counters_reset();
    LAUNCH(emb_write_rows, 1, 256, 0, parts, 1, nullptr, 3, 7, 40, nullptr, nullptr, 0, rows);
    EXPECT_EQUAL(bytes_of(counted.table()).writes, 7u * 80);
    EXPECT_EQUAL(bytes_of(counted.table()).reads, 0u);
    EXPECT_EQUAL(bytes_of(rows).reads, 7u * 160);
}

TEST(a_check_of_ids_reads_each_once) {
    Counted counted(8, emb::kF32, emb::kSum, 300, false);
    check::Buffer<unsigned long long> report(6);
    check::Buffer<uint64_t> starts(2);
    LAUNCH(emb_describe_batch, 1, 32, 0, counted.features, 1, counted.offsets, 300, 0, 1, report,
           starts);
    simt_counters_reset();
    simt_count_unique(1);
    LAUNCH(emb_check_ids, 2, 256, 0, counted.features, 0, 1, counted.offsets, 300, 300,
           counted.values, counted.ids, report);
    simt_count_unique(0);
    if (!simt_counts()) return;
    EXPECT_EQUAL(bytes_of(counted.values).reads, 8 * counted.ids);
    // Besides, the offsets and of the feature its number of rows.
    Bytes all;
    simt_unique_counters("emb_check_ids", &all.reads, &all.writes);
    EXPECT_EQUAL(all.reads, 8 * counted.ids + 8 * 301 + 8);
    EXPECT_EQUAL(all.writes, 0u);
}

PLANT(an_id_one_row_past_the_table, {check::kAsan, "heap-buffer-overflow"}) {
    Counted counted(64, emb::kF32, emb::kSum, 4, false);
    counted.values[0] = 50;
    counted.pool(1);
}

PLANT(an_output_one_row_short, {check::kAsan, "heap-buffer-overflow"}) {
    Counted counted(16, emb::kF16, emb::kMean, 4, false);
    counted.b.batch = 5;
    counted.pool(4);
}

PLANT(rows_that_begin_at_no_multiple_of_their_vector, {check::kAsan, "misaligned address"}) {
    Counted counted(64, emb::kF32, emb::kSum, 4, false);
    counted.features[0].weights = static_cast<const char*>(counted.table()) + 4;
    counted.pool(1);
}

// Two positions that write one row: emb_find_last_rows says which may.
PLANT(a_row_that_is_listed_twice_and_not_marked, {check::kTsan, "data race"}) {
    Counted counted(8, emb::kF32, emb::kSum, 4, false);
    check::Buffer<emb::RowPart> parts(1);
    parts[0] = emb::RowPart{const_cast<void*>(counted.table()), 8, 8, emb::kF32, 0, 0};
    check::Buffer<uint64_t> numbers(std::vector<uint64_t>{3, 3});
    check::Buffer<float> rows(2 * 8, 1.0f);
    LAUNCH(emb_write_rows, 1, 64, 0, parts, 1, numbers, 0, 2, 8, nullptr, nullptr, 0, rows);
}

CHECK_MAIN
