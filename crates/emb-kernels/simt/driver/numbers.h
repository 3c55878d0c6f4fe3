// 16-bit floats and the rounding of matrix units, to nearest and ties to even.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace driver {

inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
inline float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

// Keeps `kept` of the 23 bits of the fraction.
inline float round_fraction(float x, int kept) {
    if (!std::isfinite(x)) return x;
    const int dropped = 23 - kept;
    const uint32_t bits = bits_of(x);
    const uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
    return from_bits((bits + half) & ~((1u << dropped) - 1));
}

inline float bf16_to_f32(uint16_t x) { return from_bits(static_cast<uint32_t>(x) << 16); }
inline uint16_t f32_to_bf16(float x) {
    if (std::isnan(x)) return 0x7fff;
    return static_cast<uint16_t>(bits_of(round_fraction(x, 7)) >> 16);
}

inline float f16_to_f32(uint16_t x) {
    const float sign = x & 0x8000u ? -1.0f : 1.0f;
    const int exponent = (x >> 10) & 31;
    const int fraction = x & 1023;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}
inline uint16_t f32_to_f16(float x) {
    if (std::isnan(x)) return 0x7fff;
    const uint16_t sign = std::signbit(x) ? 0x8000u : 0;
    const float size = std::fabs(x);
    if (size >= 65520.0f) return sign | 0x7c00u;  // rounds past the largest, 65504
    int exponent = size == 0 ? -24 : std::ilogb(size);
    if (exponent < -14) exponent = -14;
    // In units of the last place; nearbyint rounds ties to even.
    const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    const int base = (exponent + 14) << 10;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(base + units));
}

}  // namespace driver
