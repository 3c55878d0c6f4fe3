// Allocations of devices and of pinned host memory.
//
// Plain builds map every allocation by itself, without reserving memory: a table of hundreds of
// gigabytes costs what is touched. What is freed stays unreadable for a while, so that a late
// access faults instead of reading someone else's data. Builds with the address sanitizer take
// small allocations from malloc, whose red zones find accesses past the end.
#include "memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine.h"
#include "simt_launch.h"

namespace driver {
namespace {

// Up to here fresh memory is filled with 0xcd, so that reading what nobody wrote shows.
constexpr size_t kSmall = size_t{64} << 20;
constexpr int kPoison = 0xcd;
constexpr size_t kPage = 4096;
// The alignment that cuMemAlloc promises.
constexpr size_t kAlignment = 256;
// Freed ranges kept unreadable; bounded, since the system bounds the number of mappings.
constexpr size_t kFreedKept = 4096;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kFromMalloc = true;
#else
constexpr bool kFromMalloc = false;
#endif

std::map<uint64_t, Allocation>& live() {
    static auto* the_map = new std::map<uint64_t, Allocation>;
    return *the_map;
}
std::map<uint64_t, Allocation>& freed() {
    static auto* the_map = new std::map<uint64_t, Allocation>;
    return *the_map;
}
std::deque<uint64_t>& freed_order() {
    static auto* the_order = new std::deque<uint64_t>;
    return *the_order;
}

const Allocation* holder(const std::map<uint64_t, Allocation>& map, uint64_t address) {
    auto above = map.upper_bound(address);
    if (above == map.begin()) return nullptr;
    const Allocation& below = std::prev(above)->second;
    return address < below.base + below.bytes ? &below : nullptr;
}

void forget_freed(uint64_t base) {
    auto found = freed().find(base);
    if (found == freed().end()) return;
    if (found->second.mapped) munmap(reinterpret_cast<void*>(base), found->second.mapped);
    freed().erase(found);
}

// New memory takes addresses back that malloc hands out again.
void forget_freed_within(uint64_t base, size_t bytes) {
    auto next = freed().lower_bound(base);
    while (next != freed().end() && next->first < base + bytes) next = freed().erase(next);
}

void* obtain(size_t bytes, size_t* mapped) {
    if (kFromMalloc && bytes < kSmall) {
        void* memory = nullptr;
        *mapped = 0;
        return posix_memalign(&memory, kAlignment, bytes) ? nullptr : memory;
    }
    *mapped = (bytes + kPage - 1) / kPage * kPage;
    void* memory = mmap(nullptr, *mapped, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

uint64_t enter_allocation(void* memory, size_t bytes, size_t mapped, Device* device, Pool* pool,
                          size_t accounted) {
    static uint64_t numbers = 0;
    Allocation allocation;
    allocation.base = reinterpret_cast<uint64_t>(memory);
    allocation.bytes = bytes;
    allocation.mapped = mapped;
    allocation.device = device;
    allocation.pool = pool;
    allocation.accounted = accounted;
    allocation.number = ++numbers;
    if (!mapped) forget_freed_within(allocation.base, bytes);
    live()[allocation.base] = allocation;
    return allocation.base;
}

void keep_freed(const Allocation& allocation) {
    if (allocation.mapped) {
        // The pages go back to the system, the addresses stay taken.
        void* base = reinterpret_cast<void*>(allocation.base);
        mmap(base, allocation.mapped, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    } else {
        free(reinterpret_cast<void*>(allocation.base));
    }
    freed()[allocation.base] = allocation;
    freed_order().push_back(allocation.base);
    if (freed_order().size() > kFreedKept) {
        forget_freed(freed_order().front());
        freed_order().pop_front();
    }
}

std::string owner(const Allocation& allocation) {
    std::string whose =
        allocation.device ? text("of device %d", allocation.device->ordinal) : "pinned host memory";
    return text("allocation %llu (%zu bytes %s)",
                static_cast<unsigned long long>(allocation.number), allocation.bytes,
                whose.c_str());
}

// The rest of the last page holds poison as well. Where it does not, somebody wrote past the end.
bool written_past_end(const Allocation& allocation) {
    if (!allocation.mapped || allocation.bytes >= kSmall) return false;
    const auto* bytes = reinterpret_cast<const unsigned char*>(allocation.base);
    for (size_t i = allocation.bytes; i < allocation.mapped; ++i) {
        if (bytes[i] != kPoison) return true;
    }
    return false;
}

bool may_touch(const Device& device, const Allocation& allocation) {
    Device* self = const_cast<Device*>(&device);
    if (!allocation.device || allocation.device == self) return true;
    // Memory of a pool is opened by the pool, not by cuCtxEnablePeerAccess.
    if (allocation.pool) return allocation.pool->access.count(self) > 0;
    return self->peers.count(allocation.device) > 0;
}

std::string no_peer_access(const Device& device, const Allocation& allocation) {
    return text("device %d has no peer access to device %d, whose %s it touches%s", device.ordinal,
                allocation.device->ordinal, owner(allocation).c_str(),
                allocation.pool ? " (memory of a pool: cuMemPoolSetAccess)" : "");
}

}  // namespace

int allocate(Lock& lock, Device& device, Pool* pool, size_t bytes, uint64_t* address) {
    const size_t accounted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    // Frees that are queued come before the device is called full.
    if (device.used + accounted > device.total) run_what_may(lock);
    if (device.used + accounted > device.total) return kOutOfMemory;
    size_t mapped = 0;
    void* memory = obtain(bytes, &mapped);
    if (!memory) return kOutOfMemory;
    if (bytes < kSmall) memset(memory, kPoison, mapped ? mapped : bytes);
    device.used += accounted;
    if (pool) {
        pool->used += accounted;
        if (pool->used > pool->high) pool->high = pool->used;
    }
    *address = enter_allocation(memory, bytes, mapped, &device, pool, accounted);
    if (simt_counts()) simt_count_region(memory, bytes);
    return kOk;
}

int allocate_host(size_t bytes, void** address) {
    size_t mapped = 0;
    void* memory = obtain(bytes, &mapped);
    if (!memory) return kOutOfMemory;
    if (bytes < kSmall) memset(memory, kPoison, mapped ? mapped : bytes);
    enter_allocation(memory, bytes, mapped, nullptr, nullptr, 0);
    *address = memory;
    return kOk;
}

int release(uint64_t address, bool host) {
    auto found = live().find(address);
    if (found == live().end() || host != (found->second.device == nullptr) ||
        found->second.registered) {
        say("free of 0x%llx, which is %s", static_cast<unsigned long long>(address),
            describe(address).c_str());
        return kInvalidValue;
    }
    Allocation allocation = found->second;
    live().erase(found);
    if (written_past_end(allocation)) {
        const std::string message = owner(allocation) + " was written past its end";
        allocation.device ? fail(*allocation.device, kIllegalAddress, message)
                          : say("%s", message.c_str());
    }
    if (allocation.device) allocation.device->used -= allocation.accounted;
    if (allocation.pool) allocation.pool->used -= allocation.accounted;
    if (allocation.device && simt_counts()) simt_uncount_region(reinterpret_cast<void*>(address));
    keep_freed(allocation);
    return kOk;
}

int register_host(void* address, size_t bytes) {
    if (!address || !bytes) return kInvalidValue;
    if (find_allocation(reinterpret_cast<uint64_t>(address))) return kAlreadyRegistered;
    uint64_t base = enter_allocation(address, bytes, 0, nullptr, nullptr, 0);
    live()[base].registered = true;
    return kOk;
}

int unregister_host(void* address) {
    auto found = live().find(reinterpret_cast<uint64_t>(address));
    if (found == live().end() || !found->second.registered) return kNotRegistered;
    live().erase(found);
    return kOk;
}

const Allocation* find_allocation(uint64_t address) { return holder(live(), address); }

std::string describe(uint64_t address) {
    if (address == 0) return "null";
    if (const Allocation* inside = holder(live(), address)) {
        return text("byte %llu of ", static_cast<unsigned long long>(address - inside->base)) +
               owner(*inside);
    }
    if (const Allocation* was = holder(freed(), address)) {
        return text("byte %llu of freed ", static_cast<unsigned long long>(address - was->base)) +
               owner(*was);
    }
    auto above = live().upper_bound(address);
    if (above != live().begin()) {
        const Allocation& below = std::prev(above)->second;
        uint64_t past = address - below.base - below.bytes;
        if (past < kSmall)
            return text("%llu bytes past the end of ", static_cast<unsigned long long>(past)) +
                   owner(below);
    }
    return "in no allocation";
}

std::string refuse(const Device& device, const Access& access) {
    if (access.bytes == 0) return "";
    const char* verb = access.write ? "writes" : "reads";
    const Allocation* allocation = find_allocation(access.address);
    if (!allocation) {
        return text("%s %zu bytes at 0x%llx, which is ", verb, access.bytes,
                    static_cast<unsigned long long>(access.address)) +
               describe(access.address);
    }
    if (access.address + access.bytes > allocation->base + allocation->bytes) {
        return text("%s %zu bytes from byte %llu on, past the end of ", verb, access.bytes,
                    static_cast<unsigned long long>(access.address - allocation->base)) +
               owner(*allocation);
    }
    if (!access.any_device && !may_touch(device, *allocation))
        return no_peer_access(device, *allocation);
    return "";
}

namespace {

// Small memory that a kernel is given may be a list of descriptors: addresses in it count as well.
// Not in builds with the thread sanitizer, where this would be a race with kernels of other
// devices.
std::string refuse_held([[maybe_unused]] const Device& device,
                        [[maybe_unused]] const Allocation& allocation) {
#if !defined(__SANITIZE_THREAD__)
    constexpr size_t kDescriptors = 64 << 10;
    if (state().devices.size() < 2 || allocation.bytes > kDescriptors || !allocation.device ||
        live().empty())
        return "";
    const uint64_t lowest = live().begin()->first,
                   highest = live().rbegin()->first + live().rbegin()->second.bytes;
    const auto* words = reinterpret_cast<const uint64_t*>(allocation.base);
    for (size_t i = 0; i < allocation.bytes / 8; ++i) {
        if (words[i] < lowest || words[i] >= highest) continue;
        const Allocation* held = find_allocation(words[i]);
        if (held && !may_touch(device, *held))
            return text("word %zu of ", i) + owner(allocation) + ": " +
                   no_peer_access(device, *held);
    }
#endif
    return "";
}

}  // namespace

std::string refuse_word(const Device& device, uint64_t word) {
    if (const Allocation* allocation = find_allocation(word)) {
        return may_touch(device, *allocation) ? refuse_held(device, *allocation)
                                              : no_peer_access(device, *allocation);
    }
    if (holder(freed(), word))
        return text("a parameter is 0x%llx, ", static_cast<unsigned long long>(word)) +
               describe(word);
    return "";
}

std::string refuse_work(const Work& work) {
    for (const Access& access : work.accesses) {
        std::string why = refuse(*work.device, access);
        if (!why.empty()) return why;
    }
    for (uint64_t word : work.words) {
        std::string why = refuse_word(*work.device, word);
        if (!why.empty()) return why;
    }
    return "";
}

void clear(uint64_t address, size_t bytes) {
    char* begin = reinterpret_cast<char*>(address);
    const uint64_t first = (address + kPage - 1) / kPage * kPage;
    const uint64_t last = (address + bytes) / kPage * kPage;
    bool mapped = false;
    {
        Lock lock(state().mutex);
        const Allocation* allocation = find_allocation(address);
        mapped = allocation && allocation->mapped;
    }
    if (!mapped || bytes < (size_t{1} << 20)) {
        memset(begin, 0, bytes);
        return;
    }
    memset(begin, 0, first - address);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    memset(reinterpret_cast<void*>(last), 0, address + bytes - last);
}

}  // namespace driver
