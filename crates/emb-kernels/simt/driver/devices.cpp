// cuInit, devices and contexts.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine.h"
#include "faults.h"
#include "graph.h"
#include "memory.h"

namespace driver {
namespace {

constexpr int kVersion = 13000;  // CUDA 13.0
constexpr uint64_t kDefaultMemory = uint64_t{8} << 30;

Device* device_of(int ordinal) {
    auto& devices = state().devices;
    return ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()
               ? nullptr
               : devices[static_cast<size_t>(ordinal)].get();
}

void create_device(int ordinal, size_t memory) {
    auto device = std::make_unique<Device>();
    device->ordinal = ordinal;
    device->total = memory;
    device->primary.device = device.get();
    device->default_pool.device = device.get();
    device->pool = &device->default_pool;
    device->legacy = std::make_shared<Stream>();
    device->legacy->device = device.get();
    state().streams.insert(device->legacy);
    state().contexts.insert(&device->primary);
    state().pools.insert(&device->default_pool);
    state().devices.push_back(std::move(device));
}

struct Attribute {
    int number;
    int value;
};

// Of CUdevice_attribute, as an H100 reports them where kernels can tell; 16 multiprocessors, so
// that grids of tests stay small.
constexpr Attribute kAttributes[] = {
    {1, 1024},                                 // threads of a block
    {2, 1024},        {3, 1024},  {4, 64},     // block dimensions
    {5, 2147483647},  {6, 65535}, {7, 65535},  // grid dimensions
    {8, 49152},                                // shared bytes of a block
    {9, 65536},                                // constant memory
    {10, 32},                                  // warp
    {11, 2147483647},                          // pitch
    {12, 65536},                               // registers of a block
    {13, 1000000},                             // clock, kHz
    {14, 512},                                 // texture alignment
    {15, 1},                                   // copies overlap kernels
    {16, 16},                                  // multiprocessors
    {19, 1},                                   // maps host memory
    {31, 1},                                   // concurrent kernels
    {36, 1000000},                             // memory clock, kHz
    {37, 5120},                                // memory bus, bits
    {38, 52428800},                            // L2
    {39, 2048},                                // threads of a multiprocessor
    {40, 3},                                   // copy engines
    {41, 1},                                   // unified addresses
    {75, 9},          {76, 0},                 // compute capability
    {78, 1},                                   // stream priorities
    {81, 233472},                              // shared bytes of a multiprocessor
    {82, 65536},                               // registers of a multiprocessor
    {90, 1},                                   // preemption
    {91, 1},                                   // registered memory keeps its address
    {97, 232448},                              // shared bytes of a block, opted in
    {99, 1},                                   // cuMemHostRegister
    {106, 32},                                 // blocks of a multiprocessor
    {111, 1024},                               // reserved shared bytes
    {115, 1},                                  // memory pools
};

}  // namespace
}  // namespace driver

using namespace driver;

DRIVER_API int cuInit(unsigned) {
    Lock lock(state().mutex);
    if (state().initialized) return kOk;
    const char* streams = getenv("SIMT_STREAMS");
    state().eager = streams && !strcmp(streams, "eager");
    const int devices = static_cast<int>(environment("SIMT_DEVICES", 1));
    if (devices <= 0) return 100;  // CUDA_ERROR_NO_DEVICE
    for (int i = 0; i < devices; ++i) create_device(i, environment("SIMT_MEMORY", kDefaultMemory));
    install_fault_reports();
    state().initialized = true;
    return kOk;
}

DRIVER_API int cuDriverGetVersion(int* version) {
    *version = kVersion;
    return kOk;
}

DRIVER_API int cuDeviceGetCount(int* count) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    *count = static_cast<int>(state().devices.size());
    return kOk;
}

DRIVER_API int cuDeviceGet(int* device, int ordinal) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(ordinal)) return kInvalidDevice;
    *device = ordinal;
    return kOk;
}

DRIVER_API int cuDeviceGetName(char* name, int bytes, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    snprintf(name, static_cast<size_t>(bytes), "SIMT host simulation");
    return kOk;
}

DRIVER_API int cuDeviceGetUuid_v2(char* uuid, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    memcpy(uuid, "simt-host-device", 16);
    uuid[15] = static_cast<char>(device);
    return kOk;
}
DRIVER_API int cuDeviceGetUuid(char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

DRIVER_API int cuDeviceGetPCIBusId(char* id, int bytes, int device) {
    snprintf(id, static_cast<size_t>(bytes), "0000:%02x:00.0", device + 1);
    return kOk;
}

DRIVER_API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    *bytes = device_of(device)->total;
    return kOk;
}

DRIVER_API int cuDeviceGetAttribute(int* value, int attribute, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device)) return kInvalidDevice;
    if (attribute <= 0 || attribute > 200) return kInvalidValue;
    *value = 0;
    for (const Attribute& known : kAttributes) {
        if (known.number == attribute) *value = known.value;
    }
    if (attribute == 33) *value = device + 1;  // PCI bus
    return kOk;
}

DRIVER_API int cuDeviceCanAccessPeer(int* can, int device, int peer) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!device_of(device) || !device_of(peer)) return kInvalidDevice;
    *can = device != peer;
    return kOk;
}

DRIVER_API int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
    // 1 performance rank, 2 access, 3 native atomics.
    *value = attribute == 1 ? 0 : device != peer;
    return kOk;
}

DRIVER_API int cuDevicePrimaryCtxRetain(Context** context, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* found = device_of(device);
    if (!found) return kInvalidDevice;
    ++found->primary.retained;
    *context = &found->primary;
    return kOk;
}

DRIVER_API int cuDevicePrimaryCtxRelease_v2(int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* found = device_of(device);
    if (!found || found->primary.retained == 0) return kInvalidContext;
    --found->primary.retained;
    return kOk;
}

DRIVER_API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* found = device_of(device);
    if (!found) return kInvalidDevice;
    *flags = found->primary.flags;
    *active = found->primary.retained > 0;
    return kOk;
}

DRIVER_API int cuCtxCreate_v4(Context** context, void*, unsigned flags, int device) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    Device* found = device_of(device);
    if (!found) return kInvalidDevice;
    *context = new Context{found, false, 1, flags};
    state().contexts.insert(*context);
    thread_state().contexts.push_back(*context);
    return kOk;
}

DRIVER_API int cuCtxDestroy_v2(Context* context) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().contexts.count(context) || context->primary) return kInvalidContext;
    auto& stack = thread_state().contexts;
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    state().contexts.erase(context);
    delete context;
    return kOk;
}

DRIVER_API int cuCtxSetCurrent(Context* context) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (context && !state().contexts.count(context)) return kInvalidContext;
    auto& stack = thread_state().contexts;
    if (stack.empty()) {
        stack.push_back(context);
    } else {
        stack.back() = context;
    }
    return kOk;
}

DRIVER_API int cuCtxPushCurrent_v2(Context* context) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!state().contexts.count(context)) return kInvalidContext;
    thread_state().contexts.push_back(context);
    return kOk;
}

DRIVER_API int cuCtxPopCurrent_v2(Context** context) {
    auto& stack = thread_state().contexts;
    if (stack.empty()) return kInvalidContext;
    if (context) *context = stack.back();
    stack.pop_back();
    return kOk;
}

DRIVER_API int cuCtxGetCurrent(Context** context) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    const auto& stack = thread_state().contexts;
    *context = stack.empty() ? nullptr : stack.back();
    return kOk;
}

DRIVER_API int cuCtxGetDevice(int* device) {
    Entry entry = enter();
    if (!entry.device) return entry.status;
    *device = entry.device->ordinal;
    return kOk;
}

DRIVER_API int cuCtxGetFlags(unsigned* flags) {
    *flags = 0;
    return kOk;
}
DRIVER_API int cuCtxSetFlags(unsigned) { return kOk; }
DRIVER_API int cuCtxGetApiVersion(Context*, unsigned* version) {
    *version = kVersion;
    return kOk;
}
DRIVER_API int cuCtxGetLimit(size_t* value, int) {
    *value = 1024;
    return kOk;
}
DRIVER_API int cuCtxSetLimit(int, size_t) { return kOk; }
DRIVER_API int cuCtxGetCacheConfig(int* config) {
    *config = 0;
    return kOk;
}
DRIVER_API int cuCtxSetCacheConfig(int) { return kOk; }
DRIVER_API int cuProfilerStart() { return kOk; }
DRIVER_API int cuProfilerStop() { return kOk; }

DRIVER_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return kOk;
}

DRIVER_API int cuCtxSynchronize() {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (int code = forbid_while_capturing("cuCtxSynchronize")) return code;
    Device* device = entry.device;
    wait_until(entry.lock, [device] { return idle(*device); });
    return device->status();
}

DRIVER_API int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (flags) return kInvalidValue;
    if (!state().contexts.count(peer)) return kInvalidContext;
    if (peer->device == entry.device) return kInvalidContext;
    return entry.device->peers.insert(peer->device).second ? kOk : kPeerAccessAlreadyEnabled;
}

DRIVER_API int cuCtxDisablePeerAccess(Context* peer) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!state().contexts.count(peer)) return kInvalidContext;
    return entry.device->peers.erase(peer->device) ? kOk : kPeerAccessNotEnabled;
}
