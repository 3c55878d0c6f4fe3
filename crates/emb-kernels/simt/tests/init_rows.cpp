// Initial weights and state of whole tables, parts of their columns, and numbered rows.
#include "lookup_case.h"

#include "init.cu"

using namespace testing;

namespace {

const emb::Key kKey{0xf7c37d16u, 0x14da9732u};
const emb::Uniform kRange{-0.5f, 0.75f, std::nextafterf(0.25f, -1.0f)};
constexpr float kUntouched = 12345.0f;

// One weight, from the counter of its four columns: init_bits.cpp holds those to the CPU's bits.
float plain_weight(uint64_t row, uint32_t column) {
    float four[4];
    emb::initial_weights(kKey, kRange, row, column / 4, four);
    return four[column % 4];
}

struct Window {
    uint64_t first_row, row_step;
    uint32_t first_column;
};

template <typename T>
void fills(uint32_t dim, uint32_t dtype, Window window, unsigned blocks, bool numbered) {
    const uint64_t rows = 9, first = 2, count = 6;
    const T untouched = emb::nearest<T>(kUntouched);
    check::Buffer<T> weights(rows * dim, untouched);
    emb::Table table{};
    table.weights = weights.data();
    table.rows = rows;
    table.dim = dim;
    table.dtype = dtype;
    table.first_row = window.first_row;
    table.row_step = window.row_step;
    table.first_column = window.first_column;
    std::vector<uint64_t> numbers;
    for (uint64_t k = 0; k < count; ++k) numbers.push_back((1ull << 33) + 5 * k);
    LAUNCH(emb_init_weights, blocks, 256, 0, &table, 0, numbered ? numbers.data() : nullptr, first,
           count, kKey.low, kKey.high, kRange.low, kRange.span, kRange.last);
    std::vector<T> expected(rows * dim, untouched);
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t row = first + k;
        const uint64_t global =
            numbered ? numbers[k] : window.first_row + row * window.row_step;
        for (uint32_t c = 0; c < dim; ++c) {
            const float weight = plain_weight(global, window.first_column + c);
            expected[row * dim + c] = emb::nearest<T>(weight);
        }
    }
    EXPECT_SAME_BITS(weights, expected);
}

TEST(weights_depend_on_their_global_row_and_column_alone) {
    const Window windows[] = {{0, 1, 0}, {7, 3, 4}, {1ull << 40, 2, 33}, {5, 1, 62}};
    const uint32_t dims[] = {1, 2, 3, 4, 5, 8, 31, 64, 100, 129, 1280};
    for (uint32_t i = 0; i < 11; ++i) {
        const Window window = windows[i % 4];
        fills<float>(dims[i], emb::kF32, window, 1 + i % 3, i % 2 == 1);
        fills<__half>(dims[i], emb::kF16, window, 1, i % 2 == 0);
        fills<__nv_bfloat16>(dims[i], emb::kBf16, window, 2, false);
    }
}

TEST(a_constant_is_an_interval_of_no_width) {
    check::Buffer<float> weights(5 * 6, kUntouched);
    emb::Table table{};
    table.weights = weights.data();
    table.dim = 6;
    table.row_step = 1;
    LAUNCH(emb_init_weights, 1, 256, 0, &table, 0, nullptr, 0, 5, 1, 2, 0.25f, 0.0f, 0.25f);
    EXPECT_ALL_EQUAL(weights, std::vector<float>(30, 0.25f));
}

TEST(state_of_one_slot_is_filled_and_no_other) {
    for (uint32_t width : {1u, 5u, 300u}) {
        check::Buffer<float> state(7 * 2 * width, kUntouched);
        LAUNCH(emb_init_state, 2, 256, 0, state + width, 7, width, 2 * width, 0.1f);
        for (uint64_t i = 0; i < state.size(); ++i) {
            EXPECT_AT(state[i] == (i / width % 2 ? 0.1f : kUntouched), i);
        }
    }
}

}  // namespace

CHECK_MAIN
