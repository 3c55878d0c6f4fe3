// Rows by number, to and from a buffer, against plain loops.
#include "lookup_case.h"

#include "rows.cu"

using namespace testing;

namespace {

// A table of `rows` rows with weights of a dtype, two slots of elements and one of rows.
struct Stored {
    HostTable weights;
    std::vector<float> row_state, element_state;
    std::vector<emb::RowPart> parts;
    uint32_t elements = 0;

    Stored(uint64_t seed, uint32_t dim, uint32_t dtype, uint64_t rows) {
        check::Random random(seed);
        weights = make_table(random, dim, dtype, rows);
        row_state = random.uniforms(rows);
        element_state = random.uniforms(rows * 2 * dim);
        add(const_cast<void*>(weights.data()), dim, dim, dtype);
        add(element_state.data(), 2 * dim, dim, emb::kF32);
        add(row_state.data(), 1, 1, emb::kF32);
        add(element_state.data() + dim, 2 * dim, dim, emb::kF32);
    }
    void add(void* memory, uint64_t stride, uint32_t width, uint32_t dtype) {
        parts.push_back(emb::RowPart{memory, stride, width, dtype, elements, 0});
        elements += width;
    }
    // Element `c` of a whole row.
    float at(uint64_t row, uint32_t c) const {
        const uint32_t dim = weights.dim;
        if (c < dim) return weights.at(row, c);
        if (c < 2 * dim) return element_state[row * 2 * dim + c - dim];
        if (c == 2 * dim) return row_state[row];
        return element_state[row * 2 * dim + c - dim - 1];
    }
};

std::vector<float> plain_rows(const Stored& table, const std::vector<uint64_t>& numbers) {
    std::vector<float> out;
    for (uint64_t row : numbers) {
        for (uint32_t c = 0; c < table.elements; ++c) out.push_back(table.at(row, c));
    }
    return out;
}

TEST(rows_are_read_whole_by_number) {
    const uint32_t dims[] = {1, 3, 32, 128, 200, 1280};
    for (uint32_t i = 0; i < 6; ++i) {
        Stored table(i, dims[i], i % 3, 20);
        const std::vector<uint64_t> numbers = {7, 0, 19, 7, 3};
        check::Buffer<float> out(numbers.size() * table.elements);
        LAUNCH(emb_read_rows, 1 + i % 2, 256, 0, table.parts.data(), 4, numbers.data(), 0,
               numbers.size(), table.elements, out);
        EXPECT_SAME_BITS(out, plain_rows(table, numbers));
    }
}

TEST(rows_in_a_row_are_read_part_by_part) {
    Stored table(1, 33, emb::kF16, 20);
    check::Buffer<float> out(6 * table.elements);
    LAUNCH(emb_read_rows, 1, 256, 0, table.parts.data(), 4, nullptr, 11, 6, 0, out);
    std::vector<float> expected;
    for (const emb::RowPart& part : table.parts) {
        for (uint64_t row = 11; row < 17; ++row) {
            for (uint32_t c = 0; c < part.width; ++c) {
                expected.push_back(table.at(row, part.column + c));
            }
        }
    }
    EXPECT_SAME_BITS(out, expected);
}

// Writes rows `numbers` of one table into another, and expects what a plain loop leaves there.
void writes(uint32_t dim, uint32_t dtype, const std::vector<uint64_t>& numbers, bool repeated) {
    Stored table(1, dim, dtype, 50);
    check::Random random(2);
    const std::vector<float> from = random.uniforms(numbers.size() * table.elements);
    std::vector<uint64_t> source(50, ~0ull);
    for (uint64_t k = 0; k < numbers.size(); ++k) source[numbers[k]] = k;
    std::vector<float> expected;
    for (uint64_t row = 0; row < 50; ++row) {
        for (uint32_t c = 0; c < table.elements; ++c) {
            float value = table.at(row, c);
            if (source[row] != ~0ull) {
                value = from[source[row] * table.elements + c];
                if (c < dim && dtype == emb::kF16) value = emb::load(emb::nearest<__half>(value));
                if (c < dim && dtype == emb::kBf16) {
                    value = emb::load(emb::nearest<__nv_bfloat16>(value));
                }
            }
            expected.push_back(value);
        }
    }
    check::Buffer<unsigned long long> keys(128), last(128);
    if (repeated) {
        LAUNCH(emb_find_last_rows, 2, 256, 0, numbers.data(), numbers.size(), keys, last, 127);
    }
    LAUNCH(emb_write_rows, 2, 256, 0, table.parts.data(), 4, numbers.data(), 0, numbers.size(),
           table.elements, repeated ? keys.data() : nullptr, repeated ? last.data() : nullptr, 127,
           from.data());
    std::vector<uint64_t> all;
    for (uint64_t row = 0; row < 50; ++row) all.push_back(row);
    EXPECT_SAME_BITS(plain_rows(table, all), expected);
}

TEST(rows_are_written_and_no_others) {
    writes(16, emb::kF32, {3, 49, 0}, false);
    writes(200, emb::kF16, {12, 5}, false);
    writes(1, emb::kBf16, {1, 2, 3, 4}, false);
}

TEST(of_a_row_that_is_listed_twice_the_last_stays) {
    check::Random random(3);
    std::vector<uint64_t> numbers;
    for (int k = 0; k < 60; ++k) numbers.push_back(random.below(20) * 2);
    check::for_each_schedule([&] { writes(40, emb::kF32, numbers, true); });
}

}  // namespace

CHECK_MAIN
