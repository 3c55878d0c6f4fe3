// Bytes of device memory that kernels read and write: totals by kernel and by region. Only a build
// with SIMT_COUNT has them; counter_hooks.cpp tells how accesses get here.
#include "counter.h"
#include "machine.h"
#include "simt_launch.h"

#ifdef SIMT_COUNT

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace simt {

__thread LaunchCount* counting = nullptr;

namespace {

struct KernelBytes {
    Bytes all;
    Bytes unique;
};

struct Totals {
    std::mutex guard;
    std::map<uintptr_t, CountedRegion> regions;  // by start; `bytes` of all launches
    std::map<std::string, KernelBytes> kernels;
    bool unique = false;
};
Totals& totals() {
    static auto* all = new Totals;
    return *all;
}

constexpr size_t kFirstLines = 1024;

void add(Bytes& to, const Bytes& from) {
    to.reads += from.reads;
    to.writes += from.writes;
}

__thread const char* counted_kernel = nullptr;

CountedRegion* find(LaunchCount& count, uintptr_t address) {
    if (count.last && address >= count.last->start && address < count.last->end) return count.last;
    size_t low = 0;
    for (size_t high = count.region_count; low < high;) {
        const size_t middle = (low + high) / 2;
        if (count.regions[middle].end <= address) low = middle + 1;
        else high = middle;
    }
    if (low == count.region_count || count.regions[low].start > address) return nullptr;
    count.last = &count.regions[low];
    return count.last;
}

TouchedLine& slot(TouchedLine* lines, size_t slots, uintptr_t line) {
    size_t i = (line * 0x9e3779b97f4a7c15u >> 20) & (slots - 1);
    while (lines[i].line != 0 && lines[i].line != line) i = (i + 1) & (slots - 1);
    return lines[i];
}

void grow(LaunchCount& count) {
    const size_t slots = count.line_slots * 2;
    auto* lines = static_cast<TouchedLine*>(calloc(slots, sizeof(TouchedLine)));
    if (!lines) fail(&running(), "no memory to count unique bytes");
    for (size_t i = 0; i < count.line_slots; ++i) {
        if (count.lines[i].line) slot(lines, slots, count.lines[i].line) = count.lines[i];
    }
    free(count.lines);
    count.lines = lines;
    count.line_slots = slots;
}

void touch(LaunchCount& count, uintptr_t address, size_t bytes, bool read, bool write) {
    for (uintptr_t end = address + bytes; address < end;) {
        const uintptr_t line = address / 64;
        const uintptr_t next = (line + 1) * 64 < end ? (line + 1) * 64 : end;
        const uint64_t ones = next - address == 64 ? ~0ull : (1ull << (next - address)) - 1;
        const uint64_t bits = ones << (address % 64);
        if (count.lines_used * 2 >= count.line_slots) grow(count);
        TouchedLine& touched = slot(count.lines, count.line_slots, line);
        if (touched.line == 0) {
            touched.line = line;
            ++count.lines_used;
        }
        if (read) touched.read |= bits;
        if (write) touched.written |= bits;
        address = next;
    }
}

Bytes unique_bytes(const LaunchCount& count) {
    Bytes unique;
    for (size_t i = 0; i < count.line_slots && count.lines; ++i) {
        unique.reads += static_cast<uint64_t>(__builtin_popcountll(count.lines[i].read));
        unique.writes += static_cast<uint64_t>(__builtin_popcountll(count.lines[i].written));
    }
    return unique;
}

}  // namespace

void count_access(const volatile void* address, size_t bytes, bool read, bool write) {
    LaunchCount* count = counting;
    if (!count) return;
    const auto start = reinterpret_cast<uintptr_t>(address);
    CountedRegion* region = find(*count, start);
    if (!region) return;
    const Bytes access{read ? bytes : 0, write ? bytes : 0};
    add(region->bytes, access);
    add(count->bytes, access);
    if (count->lines) touch(*count, start, bytes, read, write);
}

bool counts_unique() {
    const std::lock_guard<std::mutex> lock(totals().guard);
    return totals().unique;
}

// Regions as they are now: memory that is registered while a kernel runs is not this kernel's.
void begin_launch_count(const char* kernel) {
    Totals& all = totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    auto* count = static_cast<LaunchCount*>(calloc(1, sizeof(LaunchCount)));
    count->regions = new CountedRegion[all.regions.size() + 1];
    for (const auto& each : all.regions) {
        count->regions[count->region_count++] = {each.second.start, each.second.end, {}};
    }
    if (all.unique) {
        count->line_slots = kFirstLines;
        count->lines = static_cast<TouchedLine*>(calloc(kFirstLines, sizeof(TouchedLine)));
    }
    counted_kernel = kernel;
    counting = count;
}

void end_launch_count() {
    LaunchCount* count = counting;
    counting = nullptr;  // from here on hooked code may run on this thread
    Totals& all = totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    KernelBytes& kernel = all.kernels[counted_kernel];
    add(kernel.all, count->bytes);
    add(kernel.unique, unique_bytes(*count));
    for (size_t i = 0; i < count->region_count; ++i) {
        const auto region = all.regions.find(count->regions[i].start);
        if (region != all.regions.end()) add(region->second.bytes, count->regions[i].bytes);
    }
    delete[] count->regions;
    free(count->lines);
    free(count);
}

namespace {

void give(const Bytes& bytes, uint64_t* reads, uint64_t* writes) {
    *reads = bytes.reads;
    *writes = bytes.writes;
}

KernelBytes kernel_bytes(const char* name) {
    Totals& all = totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    const auto found = all.kernels.find(name);
    return found == all.kernels.end() ? KernelBytes{} : found->second;
}

}  // namespace

}  // namespace simt

int simt_counts() { return 1; }

void simt_count_region(const void* start, size_t bytes) {
    if (bytes == 0) return;
    simt::Totals& all = simt::totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    const auto from = reinterpret_cast<uintptr_t>(start);
    all.regions[from] = {from, from + bytes, {}};
}

void simt_uncount_region(const void* start) {
    simt::Totals& all = simt::totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    all.regions.erase(reinterpret_cast<uintptr_t>(start));
}

void simt_counters(const char* name, uint64_t* reads, uint64_t* writes) {
    simt::give(simt::kernel_bytes(name).all, reads, writes);
}

void simt_unique_counters(const char* name, uint64_t* reads, uint64_t* writes) {
    simt::give(simt::kernel_bytes(name).unique, reads, writes);
}

void simt_region_counters(const void* start, uint64_t* reads, uint64_t* writes) {
    simt::Totals& all = simt::totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    const auto found = all.regions.find(reinterpret_cast<uintptr_t>(start));
    simt::give(found == all.regions.end() ? simt::Bytes{} : found->second.bytes, reads, writes);
}

void simt_count_unique(int on) {
    simt::Totals& all = simt::totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    all.unique = on != 0;
}

void simt_counters_reset() {
    simt::Totals& all = simt::totals();
    const std::lock_guard<std::mutex> lock(all.guard);
    all.kernels.clear();
    for (auto& region : all.regions) region.second.bytes = {};
}

#else

namespace simt {

void begin_launch_count(const char*) {}
void end_launch_count() {}
bool counts_unique() { return false; }

}  // namespace simt

int simt_counts() { return 0; }
void simt_count_region(const void*, size_t) {}
void simt_uncount_region(const void*) {}
void simt_counters(const char*, uint64_t* reads, uint64_t* writes) { *reads = *writes = 0; }
void simt_unique_counters(const char*, uint64_t* reads, uint64_t* writes) { *reads = *writes = 0; }
void simt_region_counters(const void*, uint64_t* reads, uint64_t* writes) { *reads = *writes = 0; }
void simt_count_unique(int) {}
void simt_counters_reset() {}

#endif
