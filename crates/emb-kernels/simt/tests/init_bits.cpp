// Random bits of the kernels are those of src/rng.rs, and stochastic rounding that of
// src/cpu/dtype.rs: numbers below were printed by that code.
#include "lookup_testing.h"
#include "philox.cuh"

namespace {

const emb::Key kInit{0xf7c37d16u, 0x14da9732u};      // Key::new(7, "user", Purpose::Init)
const emb::Key kRounding{0x09e08209u, 0xc130fc4fu};  // Key::new(7, "user", Purpose::Rounding)
const uint64_t kRow = (1ull << 33) + 1, kStep = (3ull << 32) + 9;

// RoundingBits::new(key, kStep).fill(kRow, 2, ..): columns 128..192.
const uint16_t kBits[64] = {
    0xe9c5, 0x5211, 0xbd6b, 0xd91a, 0x6e14, 0x8a1f, 0x39d2, 0x6045, 0xb01b, 0x9297, 0x72ab,
    0xadaa, 0x8262, 0x32de, 0x8553, 0xbc31, 0xc82b, 0xc7eb, 0x9f84, 0x4f37, 0x0d2c, 0x9e7d,
    0x0e05, 0xfd41, 0x9e73, 0xca1f, 0xa3c1, 0x1b0c, 0x90f3, 0x66a5, 0xc879, 0xa2f6, 0x2dd5,
    0x670d, 0x8dcb, 0x9965, 0x4f63, 0x5440, 0x9b4d, 0x21bc, 0x4c1f, 0xe748, 0x71a2, 0x126a,
    0xe87c, 0xcd54, 0x33fc, 0x148c, 0x9003, 0xf5d1, 0xf8cf, 0x976b, 0x2582, 0x32b7, 0xb216,
    0xcc8a, 0x4ba9, 0x3205, 0xe83f, 0x47ec, 0x570a, 0x93c0, 0x1f41, 0xd6cd};

TEST(philox_gives_the_published_answer) {
    const emb::Words pi = emb::philox(
        emb::Words{{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}},
        emb::Key{0xa4093822u, 0x299f31d0u});
    const uint32_t expected[4] = {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
    for (int i = 0; i < 4; ++i) EXPECT_EQUAL(pi.w[i], expected[i]);
}

TEST(initial_weights_have_the_bits_of_the_cpu) {
    // initial_weights(key, -0.5..0.25, 2^37 + 5, first column 62, 8 columns).
    const uint32_t expected[8] = {0xbea33cfa, 0xbefcbd64, 0xbe00946e, 0x3e495c14,
                                  0xbd15d320, 0xbed3e092, 0x3d755a60, 0xbe8011e4};
    float whole[12];
    const emb::Uniform range{-0.5f, 0.75f, std::nextafterf(0.25f, -1.0f)};
    for (uint32_t block = 0; block < 3; ++block) {
        float four[4];
        emb::initial_weights(kInit, range, (1ull << 37) + 5, 15 + block, four);
        std::memcpy(whole + 4 * block, four, 16);
    }
    for (int i = 0; i < 8; ++i) EXPECT_AT(emb::bits_of(whole[2 + i]) == expected[i], i);
}

extern "C" __global__ void test_rounding_bits(emb::Key key, uint64_t row, uint64_t step,
                                              uint32_t first, uint16_t* out) {
    const emb::Words words =
        emb::rounding_bits_of_8(key, row, step, first + 8 * threadIdx.x, threadIdx.x % 32);
    for (int j = 0; j < 8; ++j) {
        out[8 * threadIdx.x + j] = (uint16_t)(words.w[j / 2] >> 16 * (j % 2));
    }
}
EMB_KERNEL(test_rounding_bits)

TEST(rounding_bits_have_the_bits_of_the_cpu) {
    for (uint32_t i = 0; i < 64; ++i) {
        EXPECT_AT(emb::rounding_bits(kRounding, kRow, kStep, 128 + i) == kBits[i], i);
    }
    check::for_each_schedule([] {
        check::Buffer<uint16_t> out(512);
        LAUNCH(test_rounding_bits, 1, 64, 0, kRounding, kRow, kStep, 128u, out);
        for (uint32_t i = 0; i < 512; ++i) {
            EXPECT_AT(out[i] == emb::rounding_bits(kRounding, kRow, kStep, 128 + i), i);
        }
    });
}

// Hashes of a million roundings, half of them in the range of binary16.
TEST(stochastic_rounding_has_the_bits_of_the_cpu) {
    uint64_t f16 = 0xcbf29ce484222325ull, bf16 = f16;
    uint32_t x = 0x12345678u;
    for (uint32_t i = 0; i < 1000000; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        const uint16_t random = (uint16_t)(x * 0x9e3779b9u >> 16);
        const uint32_t near = (x & 0x807fffffu) | (96 + (x >> 8 & 63)) << 23;
        const float value = emb::float_of(i % 2 == 0 ? x : near);
        f16 = (f16 ^ emb::stochastic_f16(value, random)) * 0x100000001b3ull;
        bf16 = (bf16 ^ emb::stochastic_bf16(value, random)) * 0x100000001b3ull;
    }
    EXPECT_EQUAL(f16, 0xed4bf0191c5d627cull);
    EXPECT_EQUAL(bf16, 0xb4accc0acfd80ff8ull);
}

}  // namespace

CHECK_MAIN
