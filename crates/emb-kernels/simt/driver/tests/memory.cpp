// Memory: accounting, poison, limits, lifetime, peers.
#include "check.h"

namespace {

size_t free_bytes() {
    size_t free = 0, total = 0;
    OK(cuMemGetInfo_v2(&free, &total));
    return free;
}

int accounting() {
    use_device(0);
    const size_t before = free_bytes();
    const uint64_t a = device_memory(1000);
    REQUIRE(before - free_bytes() == 1024);
    void* stream = new_stream();
    OK(cuMemFreeAsync(a, stream));
    REQUIRE(before - free_bytes() == 1024);
    OK(cuStreamSynchronize(stream));
    REQUIRE(free_bytes() == before);
    use_device(1);
    REQUIRE(free_bytes() == before);
    return 0;
}

int limit() {
    use_device(0);
    uint64_t a = 0, b = 0;
    void* stream = new_stream();
    OK(cuMemAllocAsync(&a, 700 << 10, stream));
    REQUIRE(cuMemAllocAsync(&b, 700 << 10, stream) == 2);
    OK(cuMemFreeAsync(a, stream));
    OK(cuMemAllocAsync(&b, 700 << 10, stream));  // the queued free comes first
    const char* name = nullptr;
    OK(cuGetErrorName(2, &name));
    return strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY") ? 1 : 0;
}

// 256 GiB, of which three pages are touched.
int sparse() {
    use_device(0);
    const size_t bytes = size_t{256} << 30;
    const uint64_t table = device_memory(bytes);
    OK(cuMemsetD8Async(table, 0, bytes, nullptr));
    const float one = 1.0f;
    OK(cuMemcpyHtoD_v2(table + bytes / 2, &one, 4));
    REQUIRE(download<float>(table + bytes / 2, 1)[0] == 1.0f);
    REQUIRE(download<float>(table + bytes - 4, 1)[0] == 0.0f);
    OK(cuMemsetD8Async(table + 4, 0, bytes - 4, nullptr));
    return download<float>(table + bytes / 2, 1)[0] == 0.0f ? 0 : 1;
}

int poisoned() {
    use_device(0);
    return download<uint32_t>(device_memory(64), 16)[15] == 0xcdcdcdcdu ? 0 : 1;
}

int unaligned_clear() {
    use_device(0);
    const size_t bytes = 3 << 20;
    const uint64_t x = device_memory(bytes);
    OK(cuMemsetD8Async(x, 7, bytes, nullptr));
    OK(cuMemsetD8Async(x + 5, 0, bytes - 11, nullptr));
    const auto got = download<uint8_t>(x, bytes);
    for (size_t i = 0; i < bytes; ++i) {
        if (got[i] != (i < 5 || i >= bytes - 6 ? 7 : 0)) return 1;
    }
    return 0;
}

int kernel_uses_freed() {
    use_device(0);
    void* stream = new_stream();
    const uint64_t x = device_memory(256), y = device_memory(256);
    OK(cuMemFreeAsync(x, stream));
    OK(launch_add(stream, y, x, 64, 1.0f));
    return cuStreamSynchronize(stream);
}

// A kernel writes four elements too many, within the page: found when the memory is freed.
int written_past_end() {
    use_device(0);
    const uint64_t x = device_memory(1000), y = upload(std::vector<float>(254, 0.0f));
    OK(launch_add(nullptr, x, y, 254, 1.0f));
    OK(cuMemFree_v2(x));
    return cuCtxSynchronize() == 700 ? 3 : 1;
}

// A descriptor in device memory leads a kernel to memory that was freed.
int kernel_follows_freed() {
    use_device(0);
    uint64_t x = device_memory(256), list = upload(std::vector<uint64_t>(1, x)),
             y = device_memory(4);
    OK(cuMemFree_v2(x));
    void* parameters[] = {&y, &list};
    OK(cuLaunchKernel(kernel("test_follow"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    return cuStreamSynchronize(nullptr);
}

// A descriptor in memory of device 1 leads to memory of device 0.
int peer_by_descriptor() {
    use_device(0);
    uint64_t x = upload(std::vector<float>(64, 1.0f));
    use_device(1);
    uint64_t list = upload(std::vector<uint64_t>(1, x)), y = device_memory(4);
    void* parameters[] = {&y, &list};
    OK(cuLaunchKernel(kernel("test_follow"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    return cuStreamSynchronize(nullptr) == 700 ? 3 : 1;
}

int copy_too_long() {
    use_device(0);
    const uint64_t x = device_memory(256);
    const std::vector<char> host(300);
    return cuMemcpyHtoD_v2(x, host.data(), 300);
}

int freed_twice() {
    use_device(0);
    const uint64_t x = device_memory(256);
    OK(cuMemFree_v2(x));
    return cuMemFree_v2(x);
}

// Device 1 reads memory of device 0 in a kernel.
int peer(bool enabled, bool pool) {
    void* zero = use_device(0);
    void* stream = new_stream();
    uint64_t x = device_memory(256);
    if (pool) OK(cuMemAllocAsync(&x, 256, stream));
    OK(cuMemsetD32Async(x, 0, 64, stream));
    OK(cuStreamSynchronize(stream));
    use_device(1);
    void* other = new_stream();
    const uint64_t y = device_memory(256);
    if (enabled) OK(cuCtxEnablePeerAccess(zero, 0));
    if (enabled && pool) {
        void* memory_pool = nullptr;
        OK(cuDeviceGetDefaultMemPool(&memory_pool, 0));
        const MemoryAccess access{1, 1, 3};
        OK(cuMemPoolSetAccess(memory_pool, &access, 1));
    }
    OK(launch_add(other, y, x, 64, 1.0f));
    const int status = cuStreamSynchronize(other);
    if (status == 0) return download<float>(y, 1)[0] == 1.0f ? 0 : 2;
    REQUIRE(status == 700);
    REQUIRE(cuStreamSynchronize(other) == 700);  // stays
    REQUIRE(cuMemsetD8Async(y, 0, 4, other) == 700);
    return 1;
}

// Copies between devices by cuMemcpyPeerAsync need no peer access.
int peer_copy() {
    void* zero = use_device(0);
    const uint64_t x = upload(std::vector<float>(64, 3.0f));
    void* one = use_device(1);
    void* stream = new_stream();
    const uint64_t y = device_memory(256);
    OK(cuMemcpyPeerAsync(y, one, x, zero, 256, stream));
    return download<float>(y, 1)[0] != 3.0f && cuStreamSynchronize(stream) == 0 &&
                   download<float>(y, 1)[0] == 3.0f
               ? 0
               : 1;
}

}  // namespace

int main() {
    passes("allocations count against their device until the free has run", "SIMT_DEVICES=2",
           accounting);
    passes("queued frees come before out of memory", "SIMT_MEMORY=1048576", limit);
    passes("a table of 256 GiB costs what is touched", "SIMT_MEMORY=1099511627776", sparse);
    passes("fresh memory is poisoned", "", poisoned);
    passes("clearing keeps the edges", "", unaligned_clear);
    Ended ended = in_process("", kernel_uses_freed);
    verdict(
        "a kernel on freed memory is refused",
        ended.status == (700 & 255) && ended.says("of freed allocation 1 (256 bytes of device 0)"),
        ended);
    ended = in_process("", written_past_end);
    verdict("a kernel that writes past the end is found at the latest when the memory is freed",
            (ended.status == 3 && ended.says("was written past its end")) ||
                ended.says("heap-buffer-overflow"),
            ended);
    ended = in_process("", kernel_follows_freed);
    verdict("a kernel that is led to freed memory ends the process, named",
            ended.status != 0 && (ended.says("kernel test_follow touches") ||
                                  ended.says("heap-use-after-free") || ended.says("SEGV")),
            ended);
    ended = in_process("SIMT_DEVICES=2", peer_by_descriptor);
#if !defined(__SANITIZE_THREAD__)
    verdict("a descriptor of another device's memory is refused",
            ended.status == 3 && ended.says("word 0 of allocation 2"), ended);
#endif
    ended = in_process("", copy_too_long);
    verdict("a copy past the end is refused at the call",
            ended.status == 1 && ended.says("past the end of allocation 1"), ended);
    ended = in_process("", freed_twice);
    verdict("a second free is refused", ended.status == 1 && ended.says("freed allocation 1"),
            ended);
    ended = in_process("SIMT_DEVICES=2", [] { return peer(false, false); });
    verdict("use without peer access fails and stays",
            ended.status == 1 && ended.says("device 1 has no peer access to device 0"), ended);
    passes("use with peer access is right", "SIMT_DEVICES=2", [] { return peer(true, false); });
    passes("memory of a pool is opened by the pool", "SIMT_DEVICES=2",
           [] { return peer(true, true); });
    ended = in_process("SIMT_DEVICES=2", [] { return peer(false, true); });
    verdict("memory of a pool that is not opened is refused",
            ended.status == 1 && ended.says("cuMemPoolSetAccess"), ended);
    passes("peer copies need no peer access", "SIMT_DEVICES=2", peer_copy);
    return finish();
}
