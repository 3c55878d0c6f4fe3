// What the tests of lookup and of rows share: checks that are counted, launches, random numbers.
#pragma once

#include "portable.cuh"

#include <cstdio>
#include <cstring>
#include <vector>

extern "C" int simt_launch(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           size_t shared_bytes, void** parameters);

namespace testing {

inline int failures = 0;

// Says what was expected, once for each of the first failures, and goes on.
inline bool check(bool holds, const char* claim, long long where = -1) {
    if (!holds && ++failures <= 20) std::fprintf(stderr, "FAILED: %s (at %lld)\n", claim, where);
    return holds;
}

template <typename T>
void same_bits(const std::vector<T>& got, const std::vector<T>& expected, const char* claim) {
    if (!check(got.size() == expected.size(), claim)) return;
    for (size_t i = 0; i < got.size(); ++i) {
        if (!check(std::memcmp(&got[i], &expected[i], sizeof(T)) == 0, claim, (long long)i)) return;
    }
}

// Starts a kernel with the parameters of cuLaunchKernel.
template <typename... A>
void launch(const char* name, unsigned blocks, unsigned threads, A... parameters) {
    void* pointers[] = {(void*)&parameters...};
    check(simt_launch(name, blocks, 1, 1, threads, 1, 1, 0, pointers) == 0, name);
}

// SplitMix64.
struct Random {
    uint64_t state;
    uint64_t next() {
        state += 0x9e3779b97f4a7c15ull;
        uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    }
    uint64_t below(uint64_t end) { return next() % end; }
    float unit() { return (float)(next() >> 40) / 16777216.0f; }
};

inline int finish(const char* what) {
    if (failures) std::fprintf(stderr, "%s: %d failed\n", what, failures);
    else std::printf("%s: ok\n", what);
    return failures != 0;
}

}  // namespace testing
