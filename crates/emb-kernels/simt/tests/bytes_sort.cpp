// Sorting, runs and keys move the bytes that their head comments say.
#include "bytes.h"

#include "keys.cu"
#include "runs.cu"
#include "sort.cu"
#include "update_pipeline.h"

#include <algorithm>

namespace {

// Sorted keys with many equal neighbours, and how many differ from the one before.
struct Sorted {
    check::Buffer<uint64_t> keys;
    uint64_t runs = 0;

    Sorted(uint32_t count, uint64_t seed) : keys(count) {
        check::Random random(seed);
        for (uint64_t& key : keys) key = random.below(count / 3 + 1);
        std::sort(keys.begin(), keys.end());
        for (uint32_t i = 0; i < count; ++i) runs += i == 0 || keys[i] != keys[i - 1];
    }
};

// Runs of the given lengths, of table 0 and on, one after the other.
check::Buffer<emb::Run> runs_of(const std::vector<uint32_t>& lengths) {
    std::vector<emb::Run> runs;
    uint32_t begin = 0;
    for (const uint32_t length : lengths) {
        runs.push_back({runs.size(), begin, static_cast<uint32_t>(runs.size() / 2)});
        begin += length;
    }
    runs.push_back({~0ull, begin, ~0u});
    return check::Buffer<emb::Run>(runs);
}

}  // namespace

TEST(a_pass_of_the_sort_moves_8_bytes_a_pair_to_count_and_12_in_and_out) {
    for (const uint32_t pairs : {1u, 4096u, 4097u, 9001u}) {
        const uint64_t tiles = tiles_of(pairs), n = pairs;
        check::Random random(pairs);
        check::Buffer<uint64_t> keys(n), sorted_keys(n);
        check::Buffer<uint32_t> tags(n), sorted_tags(n), counts(256 * tiles), totals(256);
        for (uint64_t& key : keys) key = random.bits();
        bytes::reset();
        LAUNCH(emb_sort_count, tiles, 256, 0, keys, pairs, 8, counts);
        EXPECT_MOVED(keys, 8 * n, 0);
        EXPECT_MOVED(counts, 0, 1024 * tiles);
        bytes::reset();
        LAUNCH(emb_sort_scan, 256, 32, 0, counts, tiles, totals);
        EXPECT_MOVED(counts, 1024 * tiles, 1024 * tiles);
        EXPECT_MOVED(totals, 0, 1024);
        bytes::reset();
        LAUNCH(emb_sort_scatter, tiles, 256, 0, keys, tags, sorted_keys, sorted_tags, pairs, 8,
               counts, totals);
        EXPECT_MOVED(keys, 8 * n, 0);
        EXPECT_MOVED(tags, 4 * n, 0);
        EXPECT_MOVED(sorted_keys, 0, 8 * n);
        EXPECT_MOVED(sorted_tags, 0, 4 * n);
        EXPECT_MOVED(counts, 1024 * tiles, 0);
        EXPECT_MOVED(totals, 1024 * tiles, 0);
    }
}

TEST(runs_are_counted_and_written_with_8_bytes_a_key_and_16_a_run) {
    for (const uint32_t count : {1u, 4096u, 5003u}) {
        const uint64_t tiles = tiles_of(count), n = count;
        Sorted sorted(count, count);
        check::Buffer<uint32_t> tile_runs(tiles), total(1);
        check::Buffer<emb::Run> runs(sorted.runs + 1);
        bytes::reset();
        LAUNCH(emb_run_count, tiles, 256, 0, sorted.keys, count, tile_runs);
        EXPECT_MOVED(sorted.keys, 16 * (n - 1), 0);
        EXPECT_TOUCHED("emb_run_count", n > 1 ? 8 * n : 0, 4 * tiles);
        bytes::reset();
        LAUNCH(emb_run_scan, 1, 1024, 0, tile_runs, tiles, total);
        EXPECT_MOVED(tile_runs, 4 * tiles, 4 * tiles);
        EXPECT_MOVED(total, 0, 4);
        EXPECT_EQUAL(total[0], sorted.runs);
        bytes::reset();
        LAUNCH(emb_run_write, tiles, 256, 0, sorted.keys, count, tile_runs, nullptr, 0, runs);
        EXPECT_MOVED(sorted.keys, 16 * (n - 1) + 8 * sorted.runs, 0);
        EXPECT_MOVED(runs, 0, 16 * (sorted.runs + 1));
        EXPECT_TOUCHED("emb_run_write", 8 * n + 4 * tiles, 16 * (sorted.runs + 1));
    }
}

TEST(a_run_finds_its_table_with_8_bytes_a_step) {
    const uint32_t count = 3000;
    Sorted sorted(count, 4);
    check::Buffer<uint32_t> tile_runs(1);
    check::Buffer<emb::Run> runs(sorted.runs + 1);
    check::Buffer<emb::Table> tables(5);
    for (uint32_t t = 0; t < 5; ++t) tables[t].first_key = t * 199;
    uint64_t steps = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0 && sorted.keys[i] == sorted.keys[i - 1]) continue;
        steps += 1 + bytes::steps(0, 5, sorted.keys[i], [](uint64_t t) { return t * 199; });
    }
    bytes::reset();
    LAUNCH(emb_run_write, 1, 256, 0, sorted.keys, count, tile_runs, tables, 5, runs);
    EXPECT_MOVED(tables, 8 * steps, 0);
}

TEST(long_runs_are_listed_with_4_bytes_a_run_and_20_a_chunk) {
    const std::vector<uint32_t> lengths{3, 2048, 2049, 1, 7000, 40};
    check::Buffer<emb::Run> runs = runs_of(lengths);
    uint64_t lookups = 0, chunks = 0, longs = 0;
    for (const uint32_t length : lengths) {
        lookups += length;
        longs += length > 2048;
        chunks += length > 2048 ? (length + 2047) / 2048 : 0;
    }
    check::Buffer<emb::Chunk> listed(2 * (lookups / emb::kChunk + 1));
    uint32_t count = static_cast<uint32_t>(lengths.size());
    bytes::reset();
    LAUNCH(emb_long_runs, 2, 256, 0, runs, &count, listed);
    EXPECT_MOVED(listed, 0, 16 * chunks);
    EXPECT_TOUCHED("emb_long_runs", 4 * (lengths.size() + 1) + 4 * longs, 16 * chunks);
}

TEST(the_first_run_of_a_table_is_found_with_4_bytes_a_step) {
    const uint32_t tables = 7;
    uint32_t count = 11;  // two of each of tables 0 .. 4, one of table 5
    check::Buffer<emb::Run> runs = runs_of(std::vector<uint32_t>(count, 1));
    check::Buffer<uint32_t> firsts(tables + 1);
    uint64_t steps = 0;
    for (uint32_t table = 0; table <= tables; ++table) {
        for (uint32_t low = 0, high = count; low < high; ++steps) {
            const uint32_t middle = low + (high - low) / 2;
            if (middle / 2 < table) low = middle + 1;
            else high = middle;
        }
    }
    bytes::reset();
    LAUNCH(emb_table_runs, 1, 256, 0, runs, &count, tables, firsts);
    EXPECT_MOVED(runs, 4 * steps, 0);
    EXPECT_MOVED(firsts, 0, 4 * (tables + 1));
}

TEST(totals_of_bags_read_each_weight_once) {
    const uint32_t bags = 300;
    check::Buffer<uint64_t> offsets(bytes::offsets(bags, 1));
    const uint64_t values = offsets[bags];
    check::Buffer<float> weights(values, 0.5f), totals(bags);
    bytes::reset();
    LAUNCH(emb_bag_totals, 1, 256, 0, offsets, bags, values, weights, totals);
    EXPECT_MOVED(weights, 4 * values, 0);
    EXPECT_MOVED(totals, 0, 4 * bags);
    EXPECT_TOUCHED("emb_bag_totals", 4 * values + 8 * (bags + 1), 4 * bags);
}

// Keys of a sum, a mean and a sequence.
TEST(keys_are_made_with_8_bytes_a_value_in_and_12_or_20_out) {
    const uint32_t batch = 250, bags = 3 * batch, tile = 1024;
    const std::vector<uint64_t> bounds = bytes::offsets(bags, 3);
    const uint64_t count = bounds[bags];
    std::vector<emb::Feature> features(3);
    features[1].pooling = emb::kMean;
    features[2].pooling = emb::kNone;
    check::Buffer<uint64_t> offsets(bounds), keys(count);
    check::Buffer<int64_t> values(count, 7);
    check::Buffer<uint32_t> tags(count);
    check::Buffer<float> weights(count, 1.0f);
    check::Buffer<emb::Source> sources(count);
    std::vector<float> totals(bags, 1.0f);
    const auto at = [&](uint64_t bag) { return bounds[bag]; };
    uint64_t steps = 0;
    for (uint64_t first = 0; first < count; first += tile) {
        const uint64_t last = std::min(count, first + tile) - 1;
        steps += bytes::steps(0, bags, first, at) + bytes::steps(0, bags, last, at);
        const uint64_t low = bytes::bag_of(bounds, first), high = bytes::bag_of(bounds, last) + 1;
        for (uint64_t i = first; i <= last; ++i) steps += bytes::steps(low, high, i, at);
    }
    const unsigned tiles = static_cast<unsigned>((count + tile - 1) / tile);
    bytes::reset();
    LAUNCH(emb_keys, tiles, 256, 0, features.data(), offsets, batch, bags, values, count, nullptr,
           nullptr, keys, tags, nullptr);
    EXPECT_MOVED(values, 8 * count, 0);
    EXPECT_MOVED(keys, 0, 8 * count);
    EXPECT_MOVED(tags, 0, 4 * count);
    EXPECT_MOVED(offsets, 8 * steps, 0);
    bytes::reset();
    LAUNCH(emb_keys, tiles, 256, 0, features.data(), offsets, batch, bags, values, count, weights,
           totals.data(), keys, tags, sources);
    EXPECT_MOVED(values, 8 * count, 0);
    EXPECT_MOVED(keys, 0, 8 * count);
    EXPECT_MOVED(tags, 0, 4 * count);
    EXPECT_MOVED(sources, 0, 8 * count);
    EXPECT_MOVED(weights, 4 * bounds[2 * batch], 0);  // those of the sequence are not read
}

CHECK_MAIN
