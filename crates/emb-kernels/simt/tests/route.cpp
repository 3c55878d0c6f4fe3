// Routing kernels against plain loops.
#include "route.cu"
#include "runs.cu"
#include "sort.cu"
#include "update_pipeline.h"

#include <algorithm>
#include <map>

namespace {

// Two features of `batch` bags, some of them empty; ids below 50.
struct Bags {
    uint32_t batch = 20, bags = 40;
    std::vector<uint64_t> offsets{0};
    std::vector<int64_t> values;

    explicit Bags(uint64_t seed) {
        check::Random random(seed);
        for (uint32_t bag = 0; bag < bags; ++bag) {
            for (uint64_t k = random.below(6); k > 0; --k) {
                values.push_back(static_cast<int64_t>(random.below(50)));
            }
            offsets.push_back(values.size());
        }
    }
};

}  // namespace

TEST(bags_are_split_by_owner_in_their_order) {
    const Bags in(5);
    const uint32_t count = static_cast<uint32_t>(in.values.size());
    const uint64_t owners = 3;
    // Ranges with an empty one, then modulo.
    const std::vector<uint64_t> starts{0, 10, 10, 50};
    const std::vector<emb::RowMap> maps{{owners, 0, 0, 0}, {owners, 4, 1, 0}};
    const auto owner = [&](size_t f, int64_t id) {
        return f == 1 ? static_cast<uint64_t>(id) % owners : id < 10 ? 0u : 2u;
    };
    check::for_each_schedule([&] {
        std::vector<uint64_t> keys(count), lengths(owners * in.bags), positions(count);
        std::vector<uint32_t> tags(count);
        std::vector<int64_t> ids(count);
        uint32_t bad = ~0u;
        launch("emb_owners", 2, 256, in.values.data(), count, in.offsets.data(), in.batch, in.bags,
               maps.data(), starts.data(), keys.data(), tags.data(), &bad);
        EXPECT_EQUAL(bad, ~0u);
        launch("emb_owner_lengths", 1, 256, in.offsets.data(), in.bags, keys.data(),
               lengths.data());
        sort_pairs(keys, tags, 2);
        launch("emb_owner_ids", 2, 256, keys.data(), tags.data(), count, in.values.data(),
               in.offsets.data(), in.batch, in.bags, maps.data(), starts.data(), ids.data(),
               positions.data());
        size_t k = 0;
        for (uint64_t o = 0; o < owners; ++o) {
            for (uint32_t bag = 0; bag < in.bags; ++bag) {
                const size_t f = bag / in.batch, before = k;
                for (uint64_t i = in.offsets[bag]; i < in.offsets[bag + 1]; ++i) {
                    if (owner(f, in.values[i]) != o) continue;
                    const int64_t local = f == 1 ? in.values[i] / static_cast<int64_t>(owners)
                                                 : in.values[i] - (o == 2 ? 10 : 0);
                    EXPECT_EQUAL(ids[k], local);
                    EXPECT_EQUAL(positions[k], i);
                    ++k;
                }
                EXPECT_EQUAL(lengths[o * in.bags + bag], k - before);
            }
        }
    });
}

TEST(the_first_id_without_an_owner_is_told) {
    const Bags in(6);
    const uint32_t count = static_cast<uint32_t>(in.values.size());
    const std::vector<uint64_t> starts{5, 40, 50, 60};
    std::vector<emb::RowMap> maps{{1, 0, 0, 0}, {1, 2, 0, 0}};
    const uint64_t half = in.offsets[in.batch];
    uint32_t wanted = ~0u;
    for (uint32_t i = count; i-- > 0;) {
        const int64_t id = in.values[i];
        if (i < half ? id < 5 || id >= 40 : true) wanted = i;
    }
    std::vector<uint64_t> keys(count);
    std::vector<uint32_t> tags(count);
    uint32_t bad = ~0u;
    launch("emb_owners", 2, 256, in.values.data(), count, in.offsets.data(), in.batch, in.bags,
           maps.data(), starts.data(), keys.data(), tags.data(), &bad);
    EXPECT_EQUAL(bad, wanted);
}

TEST(distinct_ids_ascend_and_every_id_finds_its_place) {
    check::Random random(8);
    std::vector<uint64_t> keys;
    std::vector<int64_t> sorted;
    for (uint32_t i = 0; i < 5000; ++i) {
        keys.push_back(random.below(4) == 0 ? random.below(1ull << 40) : random.below(9));
        sorted.push_back(static_cast<int64_t>(keys.back()));
    }
    const std::vector<uint64_t> in = keys;
    const uint32_t count = static_cast<uint32_t>(keys.size());
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<uint32_t> tags(count), inverse(count);
    std::vector<int64_t> ids(count);
    launch("emb_positions", 3, 256, none<uint32_t>(), count, static_cast<uint64_t*>(nullptr),
           tags.data());
    sort_pairs(keys, tags, 40);
    const Runs found = find_runs(keys, {});
    launch("emb_unique", tiles_of(count), 256, keys.data(), tags.data(), count,
           found.tile_runs.data(), ids.data(), inverse.data());
    ids.resize(found.count);
    EXPECT_ALL_EQUAL(ids, sorted);
    for (uint32_t i = 0; i < count; ++i) {
        EXPECT_EQUAL(ids[inverse[i]], static_cast<int64_t>(in[i]));
    }
}

TEST(rows_are_summed_by_index_in_their_order) {
    for (const uint32_t cols : {5u, 12u, 132u}) {
        check::Random random(cols);
        const uint32_t count = 300, rows = 40, lanes = cols > 64 ? 32 : 4;
        const uint64_t stride = cols + 4, out_stride = cols + 8;
        const std::vector<float> values = random.uniforms(count * stride);
        std::vector<uint32_t> indices(count), tags(count);
        std::vector<float> out(rows * out_stride, 9.0f), wanted = out;
        for (uint32_t r = 0; r < rows; ++r) {
            std::fill_n(&wanted[r * out_stride], cols, 0.0f);
        }
        for (uint32_t i = 0; i < count; ++i) {
            indices[i] = static_cast<uint32_t>(random.below(random.below(2) ? 2 : rows - 1));
            for (uint32_t c = 0; c < cols; ++c) {
                wanted[indices[i] * out_stride + c] += values[i * stride + c];
            }
        }
        std::vector<uint64_t> keys(count);
        launch("emb_clear_rows", 2, 256, out.data(), static_cast<uint64_t>(rows),
               static_cast<uint64_t>(cols), out_stride);
        launch("emb_positions", 1, 256, indices.data(), count, keys.data(), tags.data());
        sort_pairs(keys, tags, 6);
        const Runs found = find_runs(keys, {});
        launch("emb_segment_sums", 2, 256, found.runs.data(), &found.count, tags.data(),
               values.data(), stride, out.data(), out_stride, cols, lanes);
        EXPECT_ALL_EQUAL(out, wanted);
    }
}

CHECK_MAIN
