// Atomics of global and shared memory, with CUDA's overloads and no others: `uint64_t` is
// `unsigned long` on Linux and needs a cast to `unsigned long long` here as under nvcc.
#pragma once

#include "simt_types.h"

namespace simt {

#ifdef SIMT_TSAN
// Tell the race checker that fences order accesses through this address; see README.md.
void before_atomic(void* address);
void after_atomic(void* address);
#else
inline void before_atomic(void*) {}
inline void after_atomic(void*) {}
#endif

// Replaces *address by change(*address) in one step; gives what was there. Relaxed, as on a GPU.
template <typename T, typename Change>
inline T atomic_change(T* address, Change change) {
    before_atomic(address);
    T old;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    T next = change(old);
    while (!__atomic_compare_exchange(address, &old, &next, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        next = change(old);
    }
    after_atomic(address);
    return old;
}

}  // namespace simt

#define SIMT_ATOMIC(NAME, T, EXPRESSION)                                        \
    inline T NAME(T* address, T value) {                                        \
        return simt::atomic_change(address, [value](T old) -> T { return EXPRESSION; }); \
    }
// Signed sums wrap around, as the hardware's do.
SIMT_ATOMIC(atomicAdd, int, static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value)))
SIMT_ATOMIC(atomicAdd, unsigned, old + value)
SIMT_ATOMIC(atomicAdd, unsigned long long, old + value)
SIMT_ATOMIC(atomicAdd, float, old + value)
SIMT_ATOMIC(atomicAdd, double, old + value)
SIMT_ATOMIC(atomicSub, int, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
SIMT_ATOMIC(atomicSub, unsigned, old - value)
SIMT_ATOMIC(atomicMin, int, value < old ? value : old)
SIMT_ATOMIC(atomicMin, unsigned, value < old ? value : old)
SIMT_ATOMIC(atomicMin, long long, value < old ? value : old)
SIMT_ATOMIC(atomicMin, unsigned long long, value < old ? value : old)
SIMT_ATOMIC(atomicMax, int, value > old ? value : old)
SIMT_ATOMIC(atomicMax, unsigned, value > old ? value : old)
SIMT_ATOMIC(atomicMax, long long, value > old ? value : old)
SIMT_ATOMIC(atomicMax, unsigned long long, value > old ? value : old)
SIMT_ATOMIC(atomicAnd, int, old & value)
SIMT_ATOMIC(atomicAnd, unsigned, old & value)
SIMT_ATOMIC(atomicAnd, unsigned long long, old & value)
SIMT_ATOMIC(atomicOr, int, old | value)
SIMT_ATOMIC(atomicOr, unsigned, old | value)
SIMT_ATOMIC(atomicOr, unsigned long long, old | value)
SIMT_ATOMIC(atomicXor, int, old ^ value)
SIMT_ATOMIC(atomicXor, unsigned, old ^ value)
SIMT_ATOMIC(atomicXor, unsigned long long, old ^ value)
SIMT_ATOMIC(atomicExch, int, (void(old), value))
SIMT_ATOMIC(atomicExch, unsigned, (void(old), value))
SIMT_ATOMIC(atomicExch, unsigned long long, (void(old), value))
SIMT_ATOMIC(atomicExch, float, (void(old), value))
SIMT_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
SIMT_ATOMIC(atomicDec, unsigned, (old == 0u || old > value) ? value : old - 1u)
#undef SIMT_ATOMIC

#define SIMT_ATOMIC_CAS(T)                                                                \
    inline T atomicCAS(T* address, T compare, T value) {                                  \
        return simt::atomic_change(                                                       \
            address, [compare, value](T old) -> T { return old == compare ? value : old; }); \
    }
SIMT_ATOMIC_CAS(int)
SIMT_ATOMIC_CAS(unsigned)
SIMT_ATOMIC_CAS(unsigned long long)
SIMT_ATOMIC_CAS(unsigned short)
#undef SIMT_ATOMIC_CAS
