// Counter-based random bits, bitwise those of src/rng.rs; and the stochastic rounding that uses
// them, bitwise that of src/cpu/dtype.rs.
//
// Philox4x32-10: Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; SC 2011.
// One evaluation is about 100 integer instructions and gives 128 bits.
#pragma once

#include "portable.cuh"

namespace emb {

// The key of one table's stream of bits.
struct Key {
    uint32_t low, high;
};

struct Words {
    uint32_t w[4];
};

__host__ __device__ __forceinline__ Words philox(Words counter, Key key) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = (uint64_t)counter.w[0] * 0xd2511f53u;
        const uint64_t b = (uint64_t)counter.w[2] * 0xcd9e8d57u;
        counter = Words{{(uint32_t)(b >> 32) ^ counter.w[1] ^ key.low, (uint32_t)b,
                         (uint32_t)(a >> 32) ^ counter.w[3] ^ key.high, (uint32_t)a}};
        key.low += 0x9e3779b9u;
        key.high += 0xbb67ae85u;
    }
    return counter;
}

// What initial weights are uniform in: [low, low + span), where `last` is the largest value below.
struct Uniform {
    float low, span, last;
};

// Initial weights of global columns 4 * block .. 4 * block + 3 of a global row.
__host__ __device__ __forceinline__ void initial_weights(Key key, Uniform range, uint64_t row,
                                                         uint32_t block, float (&out)[4]) {
    const Words words = philox(Words{{(uint32_t)row, (uint32_t)(row >> 32), block, 0}}, key);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float fraction = (float)(words.w[i] >> 8) * (1.0f / 16777216.0f);
        out[i] = fminf(range.low + fraction * range.span, range.last);
    }
}

// Counter number `block` of the bits that round a global row in one step. It has 16 bits for each
// of the eight global columns 64 * (block / 8) + block % 8 + 8 * i: half i % 2 of word i / 2.
__host__ __device__ __forceinline__ Words rounding_words(Key key, uint64_t row, uint64_t step,
                                                         uint32_t block) {
    const uint32_t high = (uint32_t)(step >> 32) << 14;
    return philox(Words{{(uint32_t)row, (uint32_t)(row >> 32), (uint32_t)step, high + block}}, key);
}

// The 16 bits of one global column: an evaluation for each, where columns cannot share one.
__host__ __device__ __forceinline__ uint16_t rounding_bits(Key key, uint64_t row, uint64_t step,
                                                           uint32_t column) {
    const Words words = rounding_words(key, row, step, column / 64 * 8 + column % 8);
    const uint32_t i = column % 64 / 8;
    const uint32_t low = i < 2 ? words.w[0] : words.w[1], high = i < 6 ? words.w[2] : words.w[3];
    const uint32_t word = i < 4 ? low : high;
    return (uint16_t)(word >> (16 * (i % 2)));
}

// The bits of the eight global columns `first .. first + 7`, one evaluation a lane: column
// first + j is half j % 2 of word j / 2 of the result.
//
// To be called by whole warps (all lanes in `mask` = kFullWarp), where eight neighbouring lanes,
// the first of them a multiple of eight, hold one row and 64 neighbouring columns: `first` is
// 64 * n + 8 * (lane % 8). A lane beyond the row's columns takes part for the others.
// Each lane evaluates one counter; the eight lanes then transpose their 8 x 8 halves.
__device__ __forceinline__ Words rounding_bits_of_8(Key key, uint64_t row, uint64_t step,
                                                    uint32_t first, uint32_t lane) {
    Words x = rounding_words(key, row, step, first / 64 * 8 + lane % 8);
    // Lane l has halves h[l][i], i = 0..7, and wants h[j][l]: three exchanges, each of which
    // swaps one bit of the lane's number with the same bit of i.
#pragma unroll
    for (int w = 0; w < 2; ++w) {  // bit 2 of i: words w and w + 2
        const uint32_t sent = (lane & 4) ? x.w[w] : x.w[w + 2];
        const uint32_t got = __shfl_xor_sync(kFullWarp, sent, 4);
        if (lane & 4) x.w[w] = got;
        else x.w[w + 2] = got;
    }
#pragma unroll
    for (int w = 0; w < 4; w += 2) {  // bit 1: words w and w + 1
        const uint32_t sent = (lane & 2) ? x.w[w] : x.w[w + 1];
        const uint32_t got = __shfl_xor_sync(kFullWarp, sent, 2);
        if (lane & 2) x.w[w] = got;
        else x.w[w + 1] = got;
    }
#pragma unroll
    for (int w = 0; w < 4; w += 2) {  // bit 0: the two halves of a word
        const uint32_t low = (x.w[w] & 0xffffu) | x.w[w + 1] << 16;
        const uint32_t high = x.w[w] >> 16 | (x.w[w + 1] & 0xffff0000u);
        const uint32_t got = __shfl_xor_sync(kFullWarp, (lane & 1) ? low : high, 1);
        const uint32_t first_half = (lane & 1) ? got : low, second_half = (lane & 1) ? high : got;
        x.w[w] = (first_half & 0xffffu) | second_half << 16;
        x.w[w + 1] = first_half >> 16 | (second_half & 0xffff0000u);
    }
    return x;
}

__host__ __device__ __forceinline__ uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

__host__ __device__ __forceinline__ float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// One of the two neighbours of `x` among the bfloat16 (as bits): the one further from zero when
// the fraction between them exceeds random / 2^16. Values that are bfloat16, infinities and NaN
// keep their value; beyond the largest finite value the neighbour is infinity.
__host__ __device__ __forceinline__ uint16_t stochastic_bf16(float x, uint16_t random) {
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) < 0x7f800000u) return (uint16_t)((bits + (0xffffu - random)) >> 16);
    const uint16_t quiet = (bits & 0x7fffffu) ? 0x40 : 0;
    return (uint16_t)(bits >> 16) | quiet;
}

// The same among the numbers of IEEE binary16.
__host__ __device__ __forceinline__ uint16_t stochastic_f16(float x, uint16_t random) {
    const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u | (magnitude >> 13 & 0x1ffu);
    } else if (magnitude >= 0x47800000u) {
        half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {
        // The exponent moves from a bias of 127 to one of 15.
        half = (magnitude + ((0xffffu - random) >> 3) - (112u << 23)) >> 13;
    } else {
        // Multiples of the subnormal step 2^-24.
        const float steps = float_of(magnitude) * 16777216.0f;
        const uint32_t whole = (uint32_t)steps;
        half = whole + ((steps - (float)whole) * 65536.0f > (float)random ? 1 : 0);
    }
    return (uint16_t)(half | (bits >> 16 & 0x8000u));
}

// As it is stored: float keeps every bit.
template <typename T> __device__ __forceinline__ T stochastic(float x, uint16_t random);
template <> __device__ __forceinline__ float stochastic<float>(float x, uint16_t) { return x; }
template <> __device__ __forceinline__ __half stochastic<__half>(float x, uint16_t random) {
    const uint16_t bits = stochastic_f16(x, random);
    __half out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}
template <>
__device__ __forceinline__ __nv_bfloat16 stochastic<__nv_bfloat16>(float x, uint16_t random) {
    const uint16_t bits = stochastic_bf16(x, random);
    __nv_bfloat16 out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

}  // namespace emb
