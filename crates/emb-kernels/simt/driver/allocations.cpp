// cuMemAlloc and its kin, memory pools, pinned host memory, pointer attributes.
#include <cstring>

#include "engine.h"
#include "graph.h"
#include "memory.h"

using namespace driver;

DRIVER_API int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    Entry entry = enter();
    if (!entry) return entry.status;
    *total = entry.device->total;
    *free_bytes = entry.device->total - entry.device->used;
    return kOk;
}

DRIVER_API int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (int code = forbid_while_capturing("cuMemAlloc")) return code;
    if (bytes == 0) return kInvalidValue;
    return allocate(entry.lock, *entry.device, nullptr, bytes, address);
}

DRIVER_API int cuMemAllocManaged(uint64_t* address, size_t bytes, unsigned) {
    return cuMemAlloc_v2(address, bytes);
}

// Waits for the device, as the driver does in practice: work that is queued may still use the
// memory.
DRIVER_API int cuMemFree_v2(uint64_t address) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (address == 0) return kOk;
    if (int code = forbid_while_capturing("cuMemFree")) return code;
    const Allocation* allocation = find_allocation(address);
    if (allocation && allocation->device) {
        Device* device = allocation->device;
        wait_until(entry.lock, [device] { return idle(*device); });
    }
    return release(address, false);
}

namespace {

int allocate_in_order(uint64_t* address, size_t bytes, Pool* pool, void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (stream->capture)
        return forbid_in_capture(stream, "cuMemAllocAsync (not offered in captures here)");
    if (bytes == 0) {
        *address = 0;
        return kOk;
    }
    if (pool && !state().pools.count(pool)) return kInvalidHandle;
    Device& device = pool ? *pool->device : *stream->device;
    return allocate(entry.lock, device, pool ? pool : device.pool, bytes, address);
}

}  // namespace

DRIVER_API int cuMemAllocAsync(uint64_t* address, size_t bytes, void* stream) {
    return allocate_in_order(address, bytes, nullptr, stream);
}

DRIVER_API int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, Pool* pool, void* stream) {
    return allocate_in_order(address, bytes, pool, stream);
}

DRIVER_API int cuMemFreeAsync(uint64_t address, void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (address == 0) return kOk;
    auto stream = find_stream(entry.device, handle);
    if (!stream) return kInvalidHandle;
    if (stream->capture)
        return forbid_in_capture(stream, "cuMemFreeAsync (not offered in captures here)");
    const Allocation* allocation = find_allocation(address);
    if (!allocation || allocation->base != address || !allocation->device)
        return release(address, false);
    auto work = std::make_shared<Work>();
    work->what = text("free %zu", allocation->bytes);
    work->finished = [address] { release(address, false); };
    return push(entry.lock, stream, work);
}

DRIVER_API int cuMemHostAlloc(void** address, size_t bytes, unsigned) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (int code = forbid_while_capturing("cuMemHostAlloc")) return code;
    if (bytes == 0) {
        *address = nullptr;
        return kInvalidValue;
    }
    return allocate_host(bytes, address);
}
DRIVER_API int cuMemAllocHost_v2(void** address, size_t bytes) {
    return cuMemHostAlloc(address, bytes, 0);
}

// Waits for everything, as freeing pinned memory does.
DRIVER_API int cuMemFreeHost(void* address) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!address) return kOk;
    if (int code = forbid_while_capturing("cuMemFreeHost")) return code;
    const auto& thread = thread_state().contexts;
    if (!thread.empty() && thread.back()) {
        Device* device = thread.back()->device;
        wait_until(entry.lock, [device] { return idle(*device); });
    }
    return release(reinterpret_cast<uint64_t>(address), true);
}

DRIVER_API int cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
    Entry entry = enter();
    if (!entry) return entry.status;
    return register_host(address, bytes);
}

DRIVER_API int cuMemHostUnregister(void* address) {
    Entry entry = enter();
    if (!entry) return entry.status;
    return unregister_host(address);
}

DRIVER_API int cuMemHostGetDevicePointer_v2(uint64_t* address, void* host, unsigned) {
    Entry entry = enter();
    if (!entry) return entry.status;
    const Allocation* allocation = find_allocation(reinterpret_cast<uint64_t>(host));
    if (!allocation || allocation->device) return kInvalidValue;
    *address = reinterpret_cast<uint64_t>(host);
    return kOk;
}

DRIVER_API int cuMemHostGetFlags(unsigned* flags, void*) {
    *flags = 0;
    return kOk;
}

DRIVER_API int cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t address) {
    Entry entry = enter();
    if (!entry) return entry.status;
    const Allocation* allocation = find_allocation(address);
    if (!allocation) return kNotFound;
    if (base) *base = allocation->base;
    if (bytes) *bytes = allocation->bytes;
    return kOk;
}

DRIVER_API int cuPointerGetAttribute(void* data, int attribute, uint64_t address) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    const Allocation* allocation = find_allocation(address);
    if (!allocation) return kInvalidValue;
    const bool host = allocation->device == nullptr;
    switch (attribute) {
        case 1:
            *static_cast<void**>(data) = host ? nullptr : &allocation->device->primary;
            return kOk;
        case 2: *static_cast<unsigned*>(data) = host ? 1 : 2; return kOk;  // CU_MEMORYTYPE_*
        case 3: *static_cast<uint64_t*>(data) = address; return kOk;
        case 4:
            if (!host) return kInvalidValue;
            *static_cast<uint64_t*>(data) = address;
            return kOk;
        case 7: *static_cast<uint64_t*>(data) = allocation->number; return kOk;
        case 8: *static_cast<unsigned*>(data) = 0; return kOk;
        case 9: *static_cast<int*>(data) = host ? 0 : allocation->device->ordinal; return kOk;
        case 11: *static_cast<uint64_t*>(data) = allocation->base; return kOk;
        case 12: *static_cast<size_t*>(data) = allocation->bytes; return kOk;
        case 13: *static_cast<unsigned*>(data) = 1; return kOk;
        case 17: *static_cast<void**>(data) = allocation->pool; return kOk;
        default: return kNotSupported;
    }
}
