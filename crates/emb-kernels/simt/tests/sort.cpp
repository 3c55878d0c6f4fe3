// The radix sort is stable, and runs are those of a plain loop.
#include "runs.cu"
#include "sort.cu"
#include "update_pipeline.h"

#include <algorithm>

namespace {

void sorts(uint32_t count, uint32_t bits, uint64_t rows) {
    std::mt19937_64 random(count * 64 + bits);
    std::vector<uint64_t> keys(count);
    std::vector<uint32_t> tags(count);
    std::vector<std::pair<uint64_t, uint32_t>> pairs;
    for (uint32_t i = 0; i < count; ++i) {
        // Many equal keys, in long and short runs.
        keys[i] = random() % 4 == 0 ? random() % rows : random() % 3;
        tags[i] = static_cast<uint32_t>(random());
        pairs.push_back({keys[i], tags[i]});
    }
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    sort_pairs(keys, tags, bits);
    for (uint32_t i = 0; i < count; ++i) {
        EXPECT_EQUAL(keys[i], pairs[i].first);
        EXPECT_EQUAL(tags[i], pairs[i].second);
    }
    // Two tables that share the rows, and an empty one between.
    std::vector<emb::Table> tables(3);
    tables[1].first_key = rows / 2;
    tables[2].first_key = rows / 2 + 1;
    const Runs found = find_runs(keys, tables);
    uint32_t run = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (i > 0 && keys[i] == keys[i - 1]) {
            continue;
        }
        const uint32_t table = keys[i] >= tables[2].first_key ? 2 : keys[i] >= tables[1].first_key;
        const emb::Run& got = found.runs[run++];
        EXPECT_EQUAL(got.begin, i);
        EXPECT_EQUAL(got.table, table);
        EXPECT_EQUAL(got.row, keys[i] - tables[table].first_key);
    }
    EXPECT_EQUAL(found.count, run);
    EXPECT_EQUAL(found.runs[run].begin, count);
    std::vector<uint32_t> firsts(4);
    launch("emb_table_runs", 1, 256, found.runs.data(), &found.count, 3u, firsts.data());
    for (uint32_t table = 0; table < 4; ++table) {
        uint32_t first = 0;
        while (first < run && found.runs[first].table < table) {
            ++first;
        }
        EXPECT_EQUAL(firsts[table], first);
    }
}

}  // namespace

TEST(pairs_are_sorted_stably_and_cut_into_runs) {
    check::for_each_schedule([] {
        sorts(1, 8, 200);
        sorts(31, 8, 200);
        sorts(4097, 12, 4000);
    });
    sorts(4096, 17, 100'000);
    sorts(9000, 40, 1ull << 40);
    sorts(5000, 64, ~0ull);
}

CHECK_MAIN
