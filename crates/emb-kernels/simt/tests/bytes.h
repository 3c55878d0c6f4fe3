// What the tests of counted bytes share: each holds a kernel to the bytes that its head comment
// says. Builds that do not count run the kernels and expect nothing of their bytes.
#pragma once

#include "check.h"

namespace bytes {

// Forgets what was counted; counts accesses from here on, and each byte of a launch once besides.
inline void reset() {
    simt_counters_reset();
    simt_count_unique(1);
}

inline void expect(uint64_t reads, uint64_t writes, uint64_t want_reads, uint64_t want_writes,
                   const char* what, const char* file, int line) {
    if (!simt_counts()) return;
    check::expect_equal(reads, want_reads, (std::string("bytes read of ") + what).c_str(), file,
                        line);
    check::expect_equal(writes, want_writes, (std::string("bytes written of ") + what).c_str(),
                        file, line);
}

inline void expect_array(const void* start, uint64_t reads, uint64_t writes, const char* what,
                         const char* file, int line) {
    uint64_t all_reads = 0, all_writes = 0;
    simt_region_counters(start, &all_reads, &all_writes);
    expect(all_reads, all_writes, reads, writes, what, file, line);
}

inline void expect_unique(const char* kernel, uint64_t reads, uint64_t writes, const char* file,
                          int line) {
    uint64_t all_reads = 0, all_writes = 0;
    simt_unique_counters(kernel, &all_reads, &all_writes);
    expect(all_reads, all_writes, reads, writes, kernel, file, line);
}

// Steps of a bisection of low..high for the last element that is not above `wanted`, as the kernels
// do it: each reads one element.
template <typename Element>
uint64_t steps(uint64_t low, uint64_t high, uint64_t wanted, Element element) {
    uint64_t count = 0;
    for (; high - low > 1; ++count) {
        const uint64_t middle = low + (high - low) / 2;
        (element(middle) <= wanted ? low : high) = middle;
    }
    return count;
}

// Offsets of bags of 0 to 5 values.
inline std::vector<uint64_t> offsets(uint32_t bags, uint64_t seed) {
    check::Random random(seed);
    std::vector<uint64_t> out{0};
    for (uint32_t bag = 0; bag < bags; ++bag) out.push_back(out.back() + random.below(6));
    return out;
}

// The bag of value `i`.
inline uint32_t bag_of(const std::vector<uint64_t>& offsets, uint64_t i) {
    uint32_t bag = 0;
    while (offsets[bag + 1] <= i) ++bag;
    return bag;
}

}  // namespace bytes

// All accesses of one array since the last reset, by all launches.
#define EXPECT_MOVED(ARRAY, READS, WRITES) \
    bytes::expect_array(ARRAY, READS, WRITES, #ARRAY, __FILE__, __LINE__)
// Bytes of all counted arrays that a kernel has touched since the last reset, each once.
#define EXPECT_TOUCHED(KERNEL, READS, WRITES) \
    bytes::expect_unique(KERNEL, READS, WRITES, __FILE__, __LINE__)
