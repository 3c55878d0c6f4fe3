// Offsets past 2^31 and 2^32: of index functions by value, and of tables whose pages are mapped as
// they are touched.
#include "lookup_case.h"

#include "gather.cu"
#include "init.cu"
#include "lookup.cu"
#include "rows.cu"

#include <sys/mman.h>

using namespace testing;

namespace {

TEST(index_functions_do_not_wrap) {
    EXPECT_EQUAL(emb::element_at((1ull << 31) + 1, 3, 2), 6442450949ull);
    EXPECT_EQUAL(emb::element_at(33554433, 128, 5), 4294967429ull);
    EXPECT_EQUAL(emb::element_at(1ull << 40, 16384, 16383), (1ull << 54) + 16383);
    // Parts of 2^21 rows of 16,384 weights and two slots: row 2^20 of the second slot.
    const emb::RowPart part{nullptr, 0, 16384, emb::kF32, 32768, 0};
    EXPECT_EQUAL(emb::place_of_part(part, 1 << 20, 1 << 21, 49152), 51539640320ull);
    EXPECT_EQUAL(emb::place_of_part(part, 1 << 20, 1 << 21, 0), 85899345920ull);
}

// 2^26 rows of 128: 2^33 elements, of which the test touches a few pages.
constexpr uint64_t kRows = 1ull << 26;
constexpr uint32_t kDim = 128;

struct Mapped {
    void* memory;
    size_t bytes;
    explicit Mapped(size_t n) : bytes(n) {
        memory = mmap(nullptr, n, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT(memory != MAP_FAILED);
    }
    ~Mapped() { munmap(memory, bytes); }
};

// Elements 2^31 and 2^32 are the first of rows 2^24 and 2^25.
const std::vector<int64_t> kIds = {kRows - 1, 1 << 24, (1 << 25) + 1, 0, (1 << 25) - 1, kRows - 1};

template <typename T>
void looks_up(uint32_t dtype) {
    Mapped table(kRows * kDim * sizeof(T));
    T* weights = static_cast<T*>(table.memory);
    std::vector<float> rows, sum(kDim);
    for (size_t k = 0; k < kIds.size(); ++k) {
        for (uint32_t c = 0; c < kDim; ++c) {
            const float value = (float)(kIds[k] % 61 + c % 7);
            weights[(uint64_t)kIds[k] * kDim + c] = emb::nearest<T>(value);
            rows.push_back(value);
            sum[c] += value;
        }
    }
    Batch b;
    b.tables.push_back(HostTable{kDim, dtype, kRows, {}, {}});
    add_feature(b, 0, emb::kSum);
    b.features[0].weights = weights;
    b.batch = 1;
    b.offsets = {0, kIds.size()};
    const std::vector<emb::Slot> all = slots(b);
    check::Buffer<float> pooled(kDim), gathered(kIds.size() * kDim);
    LAUNCH(emb_pool, (unsigned)(all.size() + 7) / 8, 256, 0, b.features.data(), all.data(),
           (uint32_t)all.size(), b.offsets.data(), kIds.data(), nullptr, pooled, kDim, 1, 1);
    LAUNCH(emb_gather, 1, 256, 0, b.features.data(), 0, 1, b.offsets.data(), 1, kIds.data(),
           nullptr, gathered, kDim, 8);
    EXPECT_ALL_EQUAL(pooled, sum);
    EXPECT_ALL_EQUAL(gathered, rows);
}

TEST(rows_at_the_end_of_a_huge_table_are_looked_up) {
    looks_up<float>(emb::kF32);
    looks_up<__half>(emb::kF16);
    looks_up<__nv_bfloat16>(emb::kBf16);
}

TEST(rows_at_the_end_of_a_huge_table_are_initialised_and_copied) {
    Mapped memory(kRows * kDim * 4);
    float* weights = static_cast<float*>(memory.memory);
    emb::Table table{};
    table.weights = weights;
    table.dim = kDim;
    table.rows = kRows;
    table.row_step = 1;
    const emb::Key key{1, 2};
    const emb::Uniform range{0.0f, 1.0f, 1.0f};
    LAUNCH(emb_init_weights, 1, 256, 0, &table, 0, nullptr, kRows - 2, 2, key.low, key.high,
           range.low, range.span, range.last);
    float four[4];
    emb::initial_weights(key, range, kRows - 1, kDim / 4 - 1, four);
    EXPECT_EQUAL(weights[kRows * kDim - 1], four[3]);
    EXPECT_EQUAL(weights[0], 0.0f);

    const emb::RowPart part{weights, kDim, kDim, emb::kF32, 0, 0};
    const std::vector<uint64_t> numbers = {kRows - 1, 1 << 25};
    check::Random random(1);
    const std::vector<float> from = random.uniforms(2 * kDim);
    LAUNCH(emb_write_rows, 1, 256, 0, &part, 1, numbers.data(), 0, 2, kDim, nullptr, nullptr, 0,
           from.data());
    EXPECT_EQUAL(weights[kRows * kDim - 1], from[kDim - 1]);
    EXPECT_EQUAL(weights[1ull << 32], from[kDim]);
    check::Buffer<float> out(2 * kDim);
    LAUNCH(emb_read_rows, 1, 256, 0, &part, 1, numbers.data(), 0, 2, kDim, out);
    EXPECT_ALL_EQUAL(out, from);
}

}  // namespace

CHECK_MAIN
