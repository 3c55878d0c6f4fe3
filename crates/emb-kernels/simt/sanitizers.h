// What the sanitizers must be told about fibers; empty where none is on. The runtime is compiled
// with the address sanitizer, but without the thread sanitizer: -DSIMT_TSAN links it only.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN
#endif
#endif

#ifdef SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef SIMT_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace simt {

// The stack of a fiber, as the sanitizers know it.
struct WatchedStack {
#ifdef SIMT_ASAN
    const void* bottom = nullptr;
    size_t bytes = 0;
    void* fake = nullptr;  // the stack of variables that are watched after their function returns
#endif
#ifdef SIMT_TSAN
    void* fiber = nullptr;
#endif
};

inline void watch_new_stack([[maybe_unused]] WatchedStack& stack,
                            [[maybe_unused]] const void* bottom, [[maybe_unused]] size_t bytes) {
#ifdef SIMT_ASAN
    stack.bottom = bottom;
    stack.bytes = bytes;
#endif
#ifdef SIMT_TSAN
    stack.fiber = __tsan_create_fiber(0);
#endif
}

// The host's own stack is known to the thread sanitizer by its thread, to the other at its return.
inline void watch_host_stack([[maybe_unused]] WatchedStack& stack) {
#ifdef SIMT_TSAN
    stack.fiber = __tsan_get_current_fiber();
#endif
}

inline void before_switch([[maybe_unused]] WatchedStack& from,
                          [[maybe_unused]] const WatchedStack& to) {
#ifdef SIMT_ASAN
    __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
#ifdef SIMT_TSAN
    // 1: the switch by itself orders nothing, or no race between two threads would be left.
    __tsan_switch_to_fiber(to.fiber, 1);
#endif
}

inline void after_switch([[maybe_unused]] WatchedStack& self,
                         [[maybe_unused]] WatchedStack& came_from) {
#ifdef SIMT_ASAN
    __sanitizer_finish_switch_fiber(self.fake, &came_from.bottom, &came_from.bytes);
#endif
}

// All that happened before a release at an address happens before what follows a later acquire.
inline void order_release([[maybe_unused]] void* address) {
#ifdef SIMT_TSAN
    __tsan_release(address);
#endif
}
inline void order_acquire([[maybe_unused]] void* address) {
#ifdef SIMT_TSAN
    __tsan_acquire(address);
#endif
}

}  // namespace simt
