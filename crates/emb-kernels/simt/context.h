// A stack and where its code stopped: what a fiber is to the processor. Two ways to switch: by
// hand on x86-64, else by ucontext (any POSIX system; -DSIMT_UCONTEXT takes it there too).
#pragma once

#include <cstddef>

#if !defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_UCONTEXT
#endif

#ifdef SIMT_UCONTEXT
#include <ucontext.h>
#endif

namespace simt {

struct Context {
#ifdef SIMT_UCONTEXT
    ucontext_t registers;
#else
    void* stack_pointer = nullptr;
#endif
};

// Prepares `context` to run entry(argument) on the stack at [stack, stack + bytes); never returns.
void make_context(Context& context, void* stack, size_t bytes, void (*entry)(void*),
                  void* argument);

// Stops here, goes on where `to` stopped; comes back when something switches to `from`.
void switch_context(Context& from, Context& to);

}  // namespace simt
