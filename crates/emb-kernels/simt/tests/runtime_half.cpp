// Conversions of 16-bit floats, all 65,536 of them: every value comes back as it was, and what lies
// between two values goes to the nearer one, halfway to the even one.
#include "check.h"

// Checks a type with `kInfinity` as the bits of infinity.
template <uint16_t kInfinity, typename T, typename Widen, typename Narrow>
static void check_type(Widen widen, Narrow narrow) {
    const auto bits_of = [&](float x) { return narrow(x).bits; };
    for (unsigned i = 0; i < 65536; ++i) {
        const auto bits = static_cast<uint16_t>(i);
        const float value = widen(T{bits});
        if ((bits & 0x7fff) > kInfinity) {
            EXPECT(value != value);
            EXPECT_EQUAL(bits_of(value), 0x7fff);
        } else {
            EXPECT_EQUAL(bits_of(value), bits);
        }
    }
    // Positive neighbours, up to the largest finite value and the one that would follow it.
    for (uint16_t bits = 0; bits < kInfinity; ++bits) {
        const double below = widen(T{bits});
        const bool largest = bits == kInfinity - 1;
        // The step after the largest value is the step before it.
        const double above = largest
                                 ? 2 * below - widen(T{static_cast<uint16_t>(bits - 1)})
                                 : widen(T{static_cast<uint16_t>(bits + 1)});
        const auto halfway = static_cast<float>((below + above) / 2);
        if (static_cast<double>(halfway) != (below + above) / 2) continue;  // not a float: bf16's last
        const auto even = static_cast<uint16_t>(bits + (bits & 1));
        EXPECT_EQUAL(bits_of(halfway), even);
        EXPECT_EQUAL(bits_of(std::nextafterf(halfway, 0.0f)), bits);
        EXPECT_EQUAL(bits_of(std::nextafterf(halfway, INFINITY)), bits + 1);
        EXPECT_EQUAL(bits_of(-halfway), even | 0x8000);
    }
    EXPECT_EQUAL(bits_of(INFINITY), kInfinity);
    EXPECT_EQUAL(bits_of(-0.0f), 0x8000);
}

TEST(halves_round_to_the_nearest_even) {
    check_type<0x7c00, __half>(__half2float, __float2half_rn);
    EXPECT_EQUAL(__half2float(__half{0x3c01}), 1.0009765625f);
    EXPECT_EQUAL(__half2float(__half{0x0001}), 0x1p-24f);
    EXPECT_EQUAL(__float2half_rn(65519.996f).bits, 0x7bff);
    EXPECT_EQUAL(__float2half_rn(1e30f).bits, 0x7c00);
    EXPECT_EQUAL(__float2half_rn(0x1p-25f).bits, 0);
}

TEST(bfloat16_rounds_to_the_nearest_even) {
    check_type<0x7f80, __nv_bfloat16>(__bfloat162float, __float2bfloat16_rn);
    EXPECT_EQUAL(__bfloat162float(__nv_bfloat16{0x3f81}), 1.0078125f);
    EXPECT_EQUAL(__float2bfloat16_rn(3.4028234e38f).bits, 0x7f80);
}

TEST(pairs_convert_as_their_parts) {
    const float2 two = __half22float2(__floats2half2_rn(1.5f, -0.1f));
    EXPECT_EQUAL(two.x, 1.5f);
    EXPECT_EQUAL(two.y, __half2float(__float2half_rn(-0.1f)));
    const float2 also = __bfloat1622float2(__floats2bfloat162_rn(1.5f, -0.1f));
    EXPECT_EQUAL(also.y, __bfloat162float(__float2bfloat16_rn(-0.1f)));
}

CHECK_MAIN
