// Memory pools: attributes, access of other devices, trimming.
#include <cstring>

#include "state.h"

using namespace driver;

namespace {

struct Location {
    int type;
    int id;
};
struct PoolProperties {
    int allocation_type, handle_types;
    Location location;
};
struct AccessDescription {
    Location location;
    int flags;
};
constexpr int kReadWrite = 3;
// Of CUmemPool_attribute.
enum { kThreshold = 4, kReservedNow = 5, kReservedHigh = 6, kUsedNow = 7, kUsedHigh = 8 };

Device* device_of(int ordinal) {
    auto& devices = state().devices;
    return ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()
               ? nullptr
               : devices[static_cast<size_t>(ordinal)].get();
}

}  // namespace

DRIVER_API int cuDeviceGetDefaultMemPool(Pool** pool, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    *pool = &device_of(device)->default_pool;
    return kOk;
}

DRIVER_API int cuDeviceGetMemPool(Pool** pool, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    *pool = device_of(device)->pool;
    return kOk;
}

DRIVER_API int cuDeviceSetMemPool(int device, Pool* pool) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* found = device_of(device);
    if (!found) return kInvalidDevice;
    if (!state().pools.count(pool) || pool->device != found) return kInvalidValue;
    found->pool = pool;
    return kOk;
}

DRIVER_API int cuMemPoolCreate(Pool** pool, const PoolProperties* properties) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* device = device_of(properties->location.id);
    if (properties->location.type != 1 || !device)
        return kInvalidValue;  // CU_MEM_LOCATION_TYPE_DEVICE
    *pool = new Pool(device);
    state().pools.insert(*pool);
    return kOk;
}

DRIVER_API int cuMemPoolDestroy(Pool* pool) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().pools.count(pool) || pool == &pool->device->default_pool) return kInvalidValue;
    if (pool->device->pool == pool) pool->device->pool = &pool->device->default_pool;
    // Allocations that are still live keep the object; it is small and stays.
    state().pools.erase(pool);
    return kOk;
}

DRIVER_API int cuMemPoolTrimTo(Pool* pool, size_t) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    return state().pools.count(pool) ? kOk : kInvalidValue;
}

DRIVER_API int cuMemPoolSetAttribute(Pool* pool, int attribute, void* value) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().pools.count(pool)) return kInvalidValue;
    if (attribute >= 1 && attribute < kThreshold) {
        pool->switches[attribute] = *static_cast<int*>(value);
    } else if (attribute == kThreshold) {
        pool->release_threshold = *static_cast<uint64_t*>(value);
    } else if (attribute == kReservedHigh || attribute == kUsedHigh) {
        pool->high = pool->used;
    } else {
        return kInvalidValue;
    }
    return kOk;
}

DRIVER_API int cuMemPoolGetAttribute(Pool* pool, int attribute, void* value) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().pools.count(pool)) return kInvalidValue;
    if (attribute >= 1 && attribute < kThreshold) {
        auto found = pool->switches.find(attribute);
        *static_cast<int*>(value) = found == pool->switches.end() ? 1 : found->second;
    } else if (attribute == kThreshold) {
        *static_cast<uint64_t*>(value) = pool->release_threshold;
    } else if (attribute == kReservedNow || attribute == kUsedNow) {
        *static_cast<uint64_t*>(value) = pool->used;
    } else if (attribute == kReservedHigh || attribute == kUsedHigh) {
        *static_cast<uint64_t*>(value) = pool->high;
    } else {
        return kInvalidValue;
    }
    return kOk;
}

DRIVER_API int cuMemPoolSetAccess(Pool* pool, const AccessDescription* descriptions, size_t count) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().pools.count(pool)) return kInvalidValue;
    for (size_t i = 0; i < count; ++i) {
        Device* device = device_of(descriptions[i].location.id);
        if (!device) return kInvalidDevice;
        if (descriptions[i].flags == kReadWrite) {
            pool->access.insert(device);
        } else {
            pool->access.erase(device);
        }
    }
    return kOk;
}

DRIVER_API int cuMemPoolGetAccess(int* flags, Pool* pool, const Location* location) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* device = device_of(location->id);
    if (!state().pools.count(pool) || !device) return kInvalidValue;
    *flags = device == pool->device || pool->access.count(device) ? kReadWrite : 0;
    return kOk;
}
