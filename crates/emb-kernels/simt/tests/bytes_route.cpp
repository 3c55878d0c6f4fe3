// Routing moves the bytes that the head comments of its kernels say.
#include "bytes.h"

#include "route.cu"
#include "runs.cu"
#include "update_pipeline.h"

#include <algorithm>
#include <set>

namespace {

constexpr uint32_t kBatch = 90, kBags = 2 * kBatch;
constexpr uint64_t kOwners = 5;

// A feature of ranges of rows, then one by modulo.
struct Routed {
    std::vector<uint64_t> bounds = bytes::offsets(kBags, 5);
    uint64_t count = bounds[kBags], ranged = bounds[kBatch];
    check::Buffer<uint64_t> offsets{bounds};
    check::Buffer<uint64_t> starts{std::vector<uint64_t>{0, 10, 10, 31, 40, 50}};
    std::vector<emb::RowMap> maps{{kOwners, 0, 0, 0}, {kOwners, 6, 1, 0}};
    check::Buffer<int64_t> values{count};
    check::Buffer<uint64_t> owners{count};
    check::Buffer<uint32_t> tags{count};
    uint64_t bag_steps = 0, owner_steps = 0;  // of bisections

    Routed() {
        check::Random random(9);
        for (uint64_t i = 0; i < count; ++i) {
            values[i] = static_cast<int64_t>(random.below(50));
            const auto bound = [&](uint64_t bag) { return bounds[bag]; };
            bag_steps += bytes::steps(0, kBags, i, bound);
            if (i >= ranged) continue;
            const auto start = [&](uint64_t owner) { return starts[owner]; };
            owner_steps += bytes::steps(0, kOwners, static_cast<uint64_t>(values[i]), start);
        }
    }
    void find() {
        uint32_t bad = ~0u;
        LAUNCH(emb_owners, 2, 256, 0, values, count, offsets, kBatch, kBags, maps.data(), starts,
               owners, tags, &bad);
    }
};

}  // namespace

TEST(an_owner_is_found_with_8_bytes_a_value_in_and_12_out) {
    Routed r;
    bytes::reset();
    r.find();
    EXPECT_MOVED(r.values, 8 * r.count, 0);
    EXPECT_MOVED(r.owners, 0, 8 * r.count);
    EXPECT_MOVED(r.tags, 0, 4 * r.count);
    EXPECT_MOVED(r.offsets, 8 * r.bag_steps, 0);
    EXPECT_MOVED(r.starts, 8 * (2 * r.ranged + r.owner_steps), 0);
}

TEST(lengths_of_owners_read_8_bytes_a_value_and_change_8) {
    Routed r;
    r.find();
    check::Buffer<uint64_t> lengths(kOwners * kBags);
    std::set<uint64_t> cells;
    for (uint64_t i = 0; i < r.count; ++i) {
        cells.insert(r.owners[i] * kBags + bytes::bag_of(r.bounds, i));
    }
    bytes::reset();
    LAUNCH(emb_owner_lengths, 1, 256, 0, r.offsets, kBags, r.owners, lengths);
    EXPECT_MOVED(r.owners, 8 * r.count, 0);
    EXPECT_MOVED(lengths, 8 * r.count, 8 * r.count);
    EXPECT_TOUCHED("emb_owner_lengths", 8 * (r.count + kBags + 1 + cells.size()), 8 * cells.size());
}

TEST(ids_of_owners_read_20_bytes_a_value_and_write_16) {
    Routed r;
    r.find();
    check::Buffer<int64_t> ids(r.count);
    check::Buffer<uint64_t> positions(r.count);
    bytes::reset();
    LAUNCH(emb_owner_ids, 2, 256, 0, r.owners, r.tags, r.count, r.values, r.offsets, kBatch, kBags,
           r.maps.data(), r.starts, ids, positions);
    EXPECT_MOVED(r.tags, 4 * r.count, 0);
    EXPECT_MOVED(r.values, 8 * r.count, 0);
    EXPECT_MOVED(ids, 0, 8 * r.count);
    EXPECT_MOVED(positions, 0, 8 * r.count);
    EXPECT_MOVED(r.offsets, 8 * r.bag_steps, 0);
    EXPECT_MOVED(r.starts, 8 * r.ranged, 0);
    // By modulo a compiler may leave out the owner; here are ranges only.
    const std::vector<emb::RowMap> ranges{r.maps[0], r.maps[0]};
    bytes::reset();
    LAUNCH(emb_owner_ids, 2, 256, 0, r.owners, r.tags, r.count, r.values, r.offsets, kBatch, kBags,
           ranges.data(), r.starts, ids, positions);
    EXPECT_MOVED(r.owners, 8 * r.count, 0);
    EXPECT_MOVED(r.starts, 8 * r.count, 0);
}

TEST(positions_write_4_bytes_a_key_or_copy_4_to_8_besides) {
    const uint64_t count = 777;
    check::Buffer<uint32_t> indices(count, 3), tags(count);
    check::Buffer<uint64_t> keys(count);
    bytes::reset();
    LAUNCH(emb_positions, 2, 256, 0, nullptr, count, nullptr, tags);
    EXPECT_TOUCHED("emb_positions", 0, 4 * count);
    bytes::reset();
    LAUNCH(emb_positions, 2, 256, 0, indices, count, keys, tags);
    EXPECT_MOVED(indices, 4 * count, 0);
    EXPECT_MOVED(keys, 0, 8 * count);
    EXPECT_MOVED(tags, 0, 4 * count);
}

TEST(distinct_ids_read_12_bytes_a_key_and_write_4_and_8_an_id) {
    const uint32_t count = 5003, tiles = tiles_of(count);
    const uint64_t n = count;
    check::Random random(2);
    std::vector<uint64_t> sorted(count);
    for (uint64_t& key : sorted) key = random.below(900);
    std::sort(sorted.begin(), sorted.end());
    const uint64_t distinct = std::set<uint64_t>(sorted.begin(), sorted.end()).size();
    check::Buffer<uint64_t> keys(sorted);
    check::Buffer<uint32_t> tags(count), tile_runs(tiles), total(1), inverse(count);
    check::Buffer<int64_t> ids(distinct);
    for (uint32_t i = 0; i < count; ++i) tags[i] = i;
    LAUNCH(emb_run_count, tiles, 256, 0, keys, count, tile_runs);
    LAUNCH(emb_run_scan, 1, 1024, 0, tile_runs, tiles, total);
    bytes::reset();
    LAUNCH(emb_unique, tiles, 256, 0, keys, tags, count, tile_runs, ids, inverse);
    EXPECT_MOVED(keys, 16 * (n - 1) + 8 * distinct, 0);
    EXPECT_MOVED(tags, 4 * n, 0);
    EXPECT_MOVED(inverse, 0, 4 * n);
    EXPECT_MOVED(ids, 0, 8 * distinct);
    EXPECT_TOUCHED("emb_unique", 12 * n + 4 * tiles, 4 * n + 8 * distinct);
}

TEST(cleared_rows_are_written_once) {
    const uint64_t rows = 13, cols = 21, stride = 24;
    check::Buffer<float> out(rows * stride, 1.0f);
    bytes::reset();
    LAUNCH(emb_clear_rows, 1, 256, 0, out, rows, cols, stride);
    EXPECT_MOVED(out, 0, 4 * rows * cols);
}

TEST(sums_of_segments_read_each_row_once_and_a_tag_for_each_block_of_columns) {
    for (const uint32_t cols : {5u, 16u, 132u, 200u}) {
        const uint32_t count = 60, lanes = cols > 64 ? 32 : 4, stride = cols + 4;
        const uint32_t width = cols % 4 == 0 ? 4 * lanes : lanes, blocks = (cols + width - 1) / width;
        check::Buffer<float> values(count * stride, 0.5f), out(9 * stride);
        check::Buffer<uint32_t> tags(count);
        std::vector<emb::Run> runs{{2, 0, 0}, {5, 1, 0}, {6, 41, 0}, {~0ull, count, ~0u}};
        for (uint32_t i = 0; i < count; ++i) tags[i] = (i * 7) % count;
        uint32_t run_count = 3;
        bytes::reset();
        LAUNCH(emb_segment_sums, 2, 256, 0, runs.data(), &run_count, tags, values, stride, out,
               stride, cols, lanes);
        EXPECT_MOVED(values, 4ull * cols * count, 0);
        EXPECT_MOVED(tags, 4ull * count * blocks, 0);
        EXPECT_MOVED(out, 0, 4ull * cols * run_count);
    }
}

CHECK_MAIN
