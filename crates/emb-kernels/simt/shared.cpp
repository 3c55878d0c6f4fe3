// Block-shared memory: a heap block for each array, so that the address sanitizer sees its ends, and
// 0xff in every byte when a block begins: NaN as a float, -1 as an integer, never a lucky zero.
#include "machine.h"

#include <cstdlib>

namespace simt {

namespace {

const char kDynamicKey = 0;

// nvcc aligns a shared array to its type and no better. Arrays of small types start 8 bytes after a
// multiple of 16 here, so that a 16-byte access of a float array is caught, and not right by luck.
constexpr size_t kOff = 8;

#ifdef SIMT_TSAN

void take(Worker& worker, SharedArray& array, size_t alignment) {
    const size_t off = alignment > kOff ? 0 : kOff;
    array.block = take_fresh(worker, array.bytes + off);
    array.data = static_cast<char*>(array.block) + off;
    // Byte by byte: the checker watches memset, and would take this for the thread's own writes.
    volatile char* bytes = array.data;
    for (size_t i = 0; i < array.bytes; ++i) bytes[i] = static_cast<char>(0xff);
}

void give_back(SharedArray&) {}

#else

void poison(const SharedArray& array) { memset(array.data, 0xff, array.bytes); }

void take(Worker&, SharedArray& array, size_t alignment) {
    const size_t off = alignment > kOff ? 0 : kOff;
    if (posix_memalign(&array.block, 16, array.bytes + off) != 0) {
        fail(&running(), "no memory for %zu bytes of shared memory", array.bytes);
    }
    array.data = static_cast<char*>(array.block) + off;
#ifdef SIMT_ASAN
    if (off) __asan_poison_memory_region(array.block, off);
#endif
    poison(array);
}

void give_back(SharedArray& array) {
#ifdef SIMT_ASAN
    if (array.data != array.block) __asan_unpoison_memory_region(array.block, kOff);
#endif
    free(array.block);
}

#endif

}  // namespace

void begin_shared(Worker& worker) {
    worker.array_count = 0;
    worker.static_shared = 0;
}

// The race checker is given arrays at new addresses for each block, see order.cpp.
void begin_block_shared(Worker& worker) {
#ifdef SIMT_TSAN
    begin_shared(worker);
#else
    for (unsigned i = 0; i < worker.array_count; ++i) poison(worker.arrays[i]);
#endif
}

void end_shared(Worker& worker) {
    for (unsigned i = 0; i < worker.array_count; ++i) give_back(worker.arrays[i]);
    begin_shared(worker);
}

void* shared_array(const void* key, size_t bytes, size_t alignment) {
    Worker& worker = *running().worker;
    for (unsigned i = 0; i < worker.array_count; ++i) {
        if (worker.arrays[i].key == key) return worker.arrays[i].data;
    }
    if (worker.array_count == kSharedArrays) fail(&running(), "more than 64 shared arrays");
    if (key != &kDynamicKey) worker.static_shared += bytes;
    if (worker.static_shared > kStaticShared ||
        worker.static_shared + worker.launch->shared > kSharedLimit) {
        fail(&running(),
             "%zu bytes of shared arrays and %zu of dynamic shared memory: at most %zu and %zu "
             "together",
             worker.static_shared, worker.launch->shared, kStaticShared, kSharedLimit);
    }
    SharedArray& array = worker.arrays[worker.array_count++];
    array.key = key;
    array.bytes = bytes;
    take(worker, array, alignment);
    return array.data;
}

void* dynamic_shared() {
    const size_t bytes = running().worker->launch->shared;
    if (bytes == 0) fail(&running(), "dynamic shared memory of a launch that asked for none");
    return shared_array(&kDynamicKey, bytes, 16);
}

}  // namespace simt
