// What the hooks that count bytes share with the totals they are added to. Private to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

struct Bytes {
    uint64_t reads = 0;
    uint64_t writes = 0;
};

// Registered device memory, with what the launch that runs has done to it.
struct CountedRegion {
    uintptr_t start;
    uintptr_t end;
    Bytes bytes;
};

// One bit a byte of 64 that lie together: what a launch has read and written of them.
struct TouchedLine {
    uintptr_t line;  // address / 64; no memory lies in line 0
    uint64_t read;
    uint64_t written;
};

// A launch's counts on one OS thread. Plain arrays: the hooks may call nothing that is hooked.
struct LaunchCount {
    CountedRegion* regions;  // by address
    size_t region_count;
    CountedRegion* last;  // where the last access was
    Bytes bytes;
    TouchedLine* lines;  // open addressing; null where unique bytes are not counted
    size_t line_slots;   // a power of two
    size_t lines_used;
};

// Of the launch that this OS thread runs, else null.
extern __thread LaunchCount* counting;

void count_access(const volatile void* address, size_t bytes, bool read, bool write);

}  // namespace simt
