// What the tests of lookup and of rows share beside check.h: bits compared, and random numbers.
#pragma once

#include "check.h"
#include "portable.cuh"

namespace testing {

inline bool holds(bool claim, const char* text, const char* file, int line, long long where) {
    const std::string at = " (at " + std::to_string(where) + ")";
    if (!claim) check::failed(file, line, text + at);
    return claim;
}

// Every bit of every element, zeros of either sign and NaN included.
template <typename A, typename B>
void same_bits(const A& actual, const B& expected, const char* text, const char* file, int line) {
    check::expect_all(actual, expected, text, file, line, [](const auto& a, const auto& b) {
        return sizeof a == sizeof b && std::memcmp(&a, &b, sizeof a) == 0;
    });
}

// In [0, 1), a multiple of 2^-24.
inline float unit(check::Random& random) { return (float)(random.bits() >> 40) * 0x1p-24f; }

}  // namespace testing

#define EXPECT_AT(CLAIM, WHERE) \
    testing::holds((CLAIM), #CLAIM, __FILE__, __LINE__, (long long)(WHERE))
#define EXPECT_SAME_BITS(ACTUAL, EXPECTED) \
    testing::same_bits((ACTUAL), (EXPECTED), #ACTUAL, __FILE__, __LINE__)
