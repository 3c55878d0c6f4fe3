// Where a thread is in its grid, block barriers and block-shared memory.
#pragma once

#include "simt_types.h"

// The place of a call, taken where the kernel writes it: reports name file and line.
#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace simt {

struct Coordinates {
    uint3 thread;
    uint3 block;
    dim3 block_dim;
    dim3 grid_dim;
    unsigned lane;
};

// Of the CUDA thread that this OS thread runs at the moment; null outside of a launch.
extern __thread const Coordinates* current;

// What a thread calls when it meets others.
struct Site {
    const char* what;
    const char* file;
    int line;
};

// Waits for the block's threads that have not returned; how many of them gave a true predicate.
unsigned sync_threads(bool predicate, Site site);

// How many threads the last barrier that this thread passed held.
unsigned threads_at_barrier();

// The block's array of that key: of `bytes`, filled with 0xff at the start of each block.
void* shared_array(const void* key, size_t bytes, size_t alignment);
void* dynamic_shared();

// Orders this thread's memory accesses around atomics, for the race checker; see README.md.
void thread_fence();

}  // namespace simt

#define threadIdx (::simt::current->thread)
#define blockIdx (::simt::current->block)
#define blockDim (::simt::current->block_dim)
#define gridDim (::simt::current->grid_dim)

inline void __syncthreads(SIMT_SITE) { simt::sync_threads(false, {"__syncthreads", file, line}); }
inline int __syncthreads_count(int predicate, SIMT_SITE) {
    return static_cast<int>(
        simt::sync_threads(predicate != 0, {"__syncthreads_count", file, line}));
}
inline int __syncthreads_or(int predicate, SIMT_SITE) {
    return simt::sync_threads(predicate != 0, {"__syncthreads_or", file, line}) != 0;
}
inline int __syncthreads_and(int predicate, SIMT_SITE) {
    const unsigned yes = simt::sync_threads(predicate != 0, {"__syncthreads_and", file, line});
    return yes == simt::threads_at_barrier();
}
inline void __threadfence() { simt::thread_fence(); }
inline void __threadfence_block() { simt::thread_fence(); }
[[noreturn]] inline void __trap() { __builtin_trap(); }

// A block-shared array on the heap, where a sanitizer sees reads and writes past its ends.
//   EMB_SHARED_ARRAY(float, tile, [32][33]);
#define EMB_SHARED_ARRAY(T, NAME, ...)                                                     \
    using NAME##_shared_type = T __VA_ARGS__;                                              \
    static const char NAME##_shared_key = 0;                                               \
    auto& NAME = *static_cast<NAME##_shared_type*>(::simt::shared_array(                   \
        &NAME##_shared_key, sizeof(NAME##_shared_type), alignof(NAME##_shared_type)))

// The launch's dynamic shared memory, as a pointer to T; 16-byte aligned.
#define EMB_DYNAMIC_SHARED(T, NAME) T* const NAME = static_cast<T*>(::simt::dynamic_shared())
