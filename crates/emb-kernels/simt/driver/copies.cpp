// Copies and fills.
#include <algorithm>
#include <cstring>

#include "engine.h"
#include "graph.h"
#include "memory.h"

using namespace driver;

namespace {

bool is_device(uint64_t address) {
    const Allocation* allocation = find_allocation(address);
    return allocation && allocation->device;
}

const char* direction(bool from_device, bool to_device) {
    return from_device ? (to_device ? "D2D" : "D2H") : (to_device ? "H2D" : "H2H");
}

struct Copy {
    uint64_t to, from;
    size_t bytes;
    bool from_device, to_device;  // must be device memory; else what it is is looked up
    bool peer = false;            // between devices by the driver's own means
};

// Queues the copy. `pageable` memory is read at the call; a copy into it waits for the copy.
int copy(Entry& entry, const Copy& request, void* handle) {
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (request.bytes == 0) return kOk;
    const bool from_pageable = !request.from_device && !find_allocation(request.from);
    const bool to_pageable = !request.to_device && !find_allocation(request.to);
    auto work = std::make_shared<Work>();
    work->what = text("copy %s %zu", direction(is_device(request.from), is_device(request.to)),
                      request.bytes);
    const Access reads{request.from, request.bytes, false, request.peer};
    const Access writes{request.to, request.bytes, true, request.peer};
    if (!from_pageable) work->accesses.push_back(reads);
    if (!to_pageable) work->accesses.push_back(writes);
    for (const Access& access : work->accesses) {
        std::string why = refuse(*stream->device, access);
        if (why.empty()) continue;
        if (why.find("peer access") != std::string::npos)
            continue;  // found when it runs, and stays
        say("device %d: %s: %s", stream->device->ordinal, work->what.c_str(), why.c_str());
        return kInvalidValue;
    }
    void* to = reinterpret_cast<void*>(request.to);
    const void* from = reinterpret_cast<const void*>(request.from);
    const size_t bytes = request.bytes;
    if (from_pageable && !stream->capture) {
        auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                          static_cast<const char*>(from) + bytes);
        work->run = [=] {
            memcpy(to, staged->data(), bytes);
            return 0;
        };
    } else {
        work->run = [=] {
            memmove(to, from, bytes);
            return 0;
        };
    }
    auto record = std::make_shared<Record>();
    if (to_pageable && !stream->capture) work->record = record;
    int code = push(entry.lock, stream, work);
    if (code == kOk && work->record) {
        wait_until(entry.lock, [record] { return record->done; });
        return stream->device->status();
    }
    return code;
}

// The calls without a stream: on the legacy stream, done when they return.
int copy_now(const Copy& request) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (int code = forbid_while_capturing("cuMemcpy")) return code;
    if (int code = copy(entry, request, nullptr)) return code;
    Stream* legacy = entry.device->legacy.get();
    wait_until(entry.lock, [legacy] { return legacy->queue.empty(); });
    return entry.device->status();
}

int copy_in_order(const Copy& request, void* stream) {
    Entry entry = enter();
    if (!entry) return entry.status;
    return copy(entry, request, stream);
}

// Fills `count` elements of the type of `value`.
template <typename T>
int fill(uint64_t address, T value, size_t count, void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (count == 0) return kOk;
    const size_t bytes = count * sizeof(T);
    auto work = std::make_shared<Work>();
    work->what = text("fill %zu", bytes);
    work->accesses.push_back(Access{address, bytes, true});
    std::string why = refuse(*stream->device, work->accesses[0]);
    if (!why.empty() && why.find("peer access") == std::string::npos) {
        say("device %d: %s: %s", stream->device->ordinal, work->what.c_str(), why.c_str());
        return kInvalidValue;
    }
    work->run = [=] {
        if (value == T{0}) {
            clear(address, bytes);
        } else {
            T* begin = reinterpret_cast<T*>(address);
            std::fill(begin, begin + count, value);
        }
        return 0;
    };
    return push(entry.lock, stream, work);
}

}  // namespace

DRIVER_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* stream) {
    return copy_in_order({to, from, bytes, false, false}, stream);
}
DRIVER_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
    return copy_in_order({to, reinterpret_cast<uint64_t>(from), bytes, false, true}, stream);
}
DRIVER_API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
    return copy_in_order({reinterpret_cast<uint64_t>(to), from, bytes, true, false}, stream);
}
DRIVER_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* stream) {
    return copy_in_order({to, from, bytes, true, true}, stream);
}
DRIVER_API int cuMemcpyPeerAsync(uint64_t to, void*, uint64_t from, void*, size_t bytes,
                                 void* stream) {
    return copy_in_order({to, from, bytes, true, true, true}, stream);
}
DRIVER_API int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
    return copy_now({to, from, bytes, false, false});
}
DRIVER_API int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
    return copy_now({to, reinterpret_cast<uint64_t>(from), bytes, false, true});
}
DRIVER_API int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
    return copy_now({reinterpret_cast<uint64_t>(to), from, bytes, true, false});
}
DRIVER_API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
    return copy_now({to, from, bytes, true, true});
}
DRIVER_API int cuMemcpyPeer(uint64_t to, void*, uint64_t from, void*, size_t bytes) {
    return copy_now({to, from, bytes, true, true, true});
}

DRIVER_API int cuMemsetD8Async(uint64_t address, unsigned char value, size_t count, void* stream) {
    return fill(address, value, count, stream);
}
DRIVER_API int cuMemsetD16Async(uint64_t address, unsigned short value, size_t count,
                                void* stream) {
    return fill(address, value, count, stream);
}
DRIVER_API int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void* stream) {
    return fill(address, value, count, stream);
}
DRIVER_API int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t count) {
    return fill(address, value, count, nullptr);
}
DRIVER_API int cuMemsetD16_v2(uint64_t address, unsigned short value, size_t count) {
    return fill(address, value, count, nullptr);
}
DRIVER_API int cuMemsetD32_v2(uint64_t address, unsigned value, size_t count) {
    return fill(address, value, count, nullptr);
}
