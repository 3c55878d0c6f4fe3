// The thread sanitizer's interface, put to another use: kernels compiled with -fsanitize=thread call
// these at every access of memory, and nothing else needs to know. No sanitizer is linked.
//
// The names and arguments are those of compiler-rt's tsan_interface.h and tsan_interface_atomic.h.
#include "counter.h"

#ifdef SIMT_COUNT

#include <cstring>

using simt::count_access;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

#define SIMT_PLAIN(BYTES)                                                                     \
    void __tsan_read##BYTES(void* address) { count_access(address, BYTES, true, false); }     \
    void __tsan_write##BYTES(void* address) { count_access(address, BYTES, false, true); }    \
    void __tsan_volatile_read##BYTES(void* address) {                                         \
        count_access(address, BYTES, true, false);                                            \
    }                                                                                         \
    void __tsan_volatile_write##BYTES(void* address) {                                        \
        count_access(address, BYTES, false, true);                                            \
    }                                                                                         \
    void __tsan_unaligned_read##BYTES(void* address) {                                        \
        count_access(address, BYTES, true, false);                                            \
    }                                                                                         \
    void __tsan_unaligned_write##BYTES(void* address) {                                       \
        count_access(address, BYTES, false, true);                                            \
    }                                                                                         \
    void __tsan_read_write##BYTES(void* address) { count_access(address, BYTES, true, true); } \
    void __tsan_unaligned_read_write##BYTES(void* address) {                                  \
        count_access(address, BYTES, true, true);                                             \
    }
SIMT_PLAIN(1)
SIMT_PLAIN(2)
SIMT_PLAIN(4)
SIMT_PLAIN(8)
SIMT_PLAIN(16)

void __tsan_read_range(void* address, unsigned long bytes) {
    count_access(address, bytes, true, false);
}
void __tsan_write_range(void* address, unsigned long bytes) {
    count_access(address, bytes, false, true);
}

// clang copies structs by the C library's functions: up to version 14 by these, where the link has
// -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset. (gcc tells of such copies by the ranges above, and
// would tell twice.)
void* __real_memcpy(void* to, const void* from, unsigned long bytes);
void* __real_memmove(void* to, const void* from, unsigned long bytes);
void* __real_memset(void* to, int value, unsigned long bytes);
#pragma weak __real_memcpy
#pragma weak __real_memmove
#pragma weak __real_memset
void* __wrap_memcpy(void* to, const void* from, unsigned long bytes) {
    count_access(from, bytes, true, false);
    count_access(to, bytes, false, true);
    return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, unsigned long bytes) {
    count_access(from, bytes, true, false);
    count_access(to, bytes, false, true);
    return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, unsigned long bytes) {
    count_access(to, bytes, false, true);
    return __real_memset(to, value, bytes);
}

// Later versions call these.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
    count_access(from, bytes, true, false);
    count_access(to, bytes, false, true);
    return memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
    count_access(from, bytes, true, false);
    count_access(to, bytes, false, true);
    return memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
    count_access(to, bytes, false, true);
    return memset(to, value, bytes);
}

// An atomic that changes memory reads and writes it once. A plain atomic load is not counted: the
// shim's atomics begin with one, and CUDA's have no other.
#define SIMT_CHANGE(BITS, T, NAME)                                                           \
    T __tsan_atomic##BITS##_##NAME(volatile T* address, T value, int) {                      \
        count_access(address, BITS / 8, true, true);                                         \
        return __atomic_##NAME(address, value, __ATOMIC_SEQ_CST);                            \
    }
#define SIMT_COMPARE(BITS, T, NAME, WEAK)                                                    \
    int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile T* address, T* expected,      \
                                                      T value, int, int) {                   \
        count_access(address, BITS / 8, true, true);                                         \
        return __atomic_compare_exchange_n(address, expected, value, WEAK, __ATOMIC_SEQ_CST, \
                                           __ATOMIC_SEQ_CST);                                \
    }
#define SIMT_ATOMICS(BITS, T)                                                                \
    T __tsan_atomic##BITS##_load(const volatile T* address, int) {                           \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                   \
    }                                                                                        \
    void __tsan_atomic##BITS##_store(volatile T* address, T value, int) {                    \
        count_access(address, BITS / 8, false, true);                                        \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                        \
    T __tsan_atomic##BITS##_exchange(volatile T* address, T value, int) {                    \
        count_access(address, BITS / 8, true, true);                                         \
        return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                        \
    }                                                                                        \
    T __tsan_atomic##BITS##_compare_exchange_val(volatile T* address, T expected, T value,   \
                                                 int, int) {                                 \
        count_access(address, BITS / 8, true, true);                                         \
        __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST,      \
                                    __ATOMIC_SEQ_CST);                                       \
        return expected;                                                                     \
    }                                                                                        \
    SIMT_COMPARE(BITS, T, strong, false)                                                     \
    SIMT_COMPARE(BITS, T, weak, true)                                                        \
    SIMT_CHANGE(BITS, T, fetch_add)                                                          \
    SIMT_CHANGE(BITS, T, fetch_sub)                                                          \
    SIMT_CHANGE(BITS, T, fetch_and)                                                          \
    SIMT_CHANGE(BITS, T, fetch_or)                                                           \
    SIMT_CHANGE(BITS, T, fetch_xor)                                                          \
    SIMT_CHANGE(BITS, T, fetch_nand)
SIMT_ATOMICS(8, uint8_t)
SIMT_ATOMICS(16, uint16_t)
SIMT_ATOMICS(32, uint32_t)
SIMT_ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}

#endif
