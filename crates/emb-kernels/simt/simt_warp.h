// What the lanes of a warp do together: shuffles, votes, matches, reductions, __syncwarp.
// Every call names the lanes it is for; all of them that have not returned must make it.
#pragma once

#include "simt_half.h"

#include "simt_thread.h"

#include <type_traits>

namespace simt {

enum class Warp : uint8_t { kSync, kShuffle, kBallot, kMatch, kReduce };
using Combine = uint64_t (*)(uint64_t, uint64_t);

// This lane's part in a call of the warp's lanes in `mask`; returns what the call gives this lane.
struct WarpCall {
    Warp kind;
    unsigned mask;
    uint64_t value;
    unsigned source;  // lane to read, of a shuffle
    Combine combine;  // of a reduction
    Site site;
};
uint64_t meet_warp(const WarpCall& call);

template <typename T>
inline uint64_t to_word(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable<T>::value, "at most 8 bytes");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}

template <typename T>
inline T from_word(uint64_t word) {
    T value;
    memcpy(&value, &word, sizeof value);
    return value;
}

template <typename T>
inline T shuffle(unsigned mask, T value, unsigned source, Site site) {
    return from_word<T>(
        meet_warp({Warp::kShuffle, mask, to_word(value), source, nullptr, site}));
}

inline unsigned ballot(unsigned mask, bool predicate, Site site) {
    return static_cast<unsigned>(
        meet_warp({Warp::kBallot, mask, predicate ? 1u : 0u, 0, nullptr, site}));
}

template <typename T>
inline T reduce(unsigned mask, T value, Combine combine, Site site) {
    return from_word<T>(meet_warp({Warp::kReduce, mask, to_word(value), 0, combine, site}));
}

// First lane of this lane's segment of `width` lanes.
inline unsigned segment(int width) {
    return current->lane & ~(static_cast<unsigned>(width) - 1u);
}

}  // namespace simt

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
    const unsigned within = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1u);
    return simt::shuffle(mask, value, simt::segment(width) | within, {"__shfl_sync", file, line});
}

template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    const unsigned lane = simt::current->lane;
    const unsigned source = lane - simt::segment(width) < delta ? lane : lane - delta;
    return simt::shuffle(mask, value, source, {"__shfl_up_sync", file, line});
}

template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    const unsigned lane = simt::current->lane;
    const unsigned end = simt::segment(width) + static_cast<unsigned>(width);
    const unsigned source = delta >= end - lane ? lane : lane + delta;
    return simt::shuffle(mask, value, source, {"__shfl_down_sync", file, line});
}

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32, SIMT_SITE) {
    const unsigned lane = simt::current->lane;
    const unsigned wanted = lane ^ static_cast<unsigned>(flip);
    const unsigned end = simt::segment(width) + static_cast<unsigned>(width);
    return simt::shuffle(mask, value, wanted < end ? wanted : lane, {"__shfl_xor_sync", file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
    return simt::ballot(mask, predicate != 0, {"__ballot_sync", file, line});
}
inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return simt::ballot(mask, predicate != 0, {"__any_sync", file, line}) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
    return simt::ballot(mask, predicate == 0, {"__all_sync", file, line}) == 0;
}

// The lanes of `mask` that hold the same value.
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, SIMT_SITE) {
    return static_cast<unsigned>(simt::meet_warp({simt::Warp::kMatch, mask, simt::to_word(value),
                                                  0, nullptr, {"__match_any_sync", file, line}}));
}

inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
    simt::meet_warp({simt::Warp::kSync, mask, 0, 0, nullptr, {"__syncwarp", file, line}});
}

// Reductions of 32-bit integers over the lanes of `mask` (compute capability 8.0 and up).
#define SIMT_REDUCE(NAME, T, EXPRESSION)                                          \
    inline T NAME(unsigned mask, T value, SIMT_SITE) {                            \
        const simt::Combine combine = [](uint64_t left, uint64_t right) {         \
            const T a = simt::from_word<T>(left);                                 \
            const T b = simt::from_word<T>(right);                                \
            return simt::to_word(static_cast<T>(EXPRESSION));                     \
        };                                                                        \
        return simt::reduce(mask, value, combine, {#NAME, file, line});           \
    }
SIMT_REDUCE(__reduce_add_sync, unsigned, a + b)
SIMT_REDUCE(__reduce_add_sync, int, static_cast<unsigned>(a) + static_cast<unsigned>(b))
SIMT_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
SIMT_REDUCE(__reduce_min_sync, int, a < b ? a : b)
SIMT_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
SIMT_REDUCE(__reduce_max_sync, int, a > b ? a : b)
SIMT_REDUCE(__reduce_and_sync, unsigned, a & b)
SIMT_REDUCE(__reduce_or_sync, unsigned, a | b)
SIMT_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef SIMT_REDUCE
