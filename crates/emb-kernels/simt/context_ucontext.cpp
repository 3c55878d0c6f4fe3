// The portable switch: makecontext and swapcontext of POSIX. Each switch saves the signal mask by a
// system call, which makes it several times slower than the one written by hand.
#include "context.h"

#ifdef SIMT_UCONTEXT

#include <cstdint>

namespace simt {

namespace {

// makecontext passes ints only: two pointers travel as four of them.
void first_frame(unsigned entry_high, unsigned entry_low, unsigned argument_high,
                 unsigned argument_low) {
    const auto join = [](unsigned high, unsigned low) {
        return static_cast<uintptr_t>((static_cast<uint64_t>(high) << 32) | low);
    };
    auto* entry = reinterpret_cast<void (*)(void*)>(join(entry_high, entry_low));
    entry(reinterpret_cast<void*>(join(argument_high, argument_low)));
}

}  // namespace

void make_context(Context& context, void* stack, size_t bytes, void (*entry)(void*),
                  void* argument) {
    getcontext(&context.registers);
    context.registers.uc_stack.ss_sp = stack;
    context.registers.uc_stack.ss_size = bytes;
    context.registers.uc_link = nullptr;
    const auto code = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(entry));
    const auto data = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(argument));
    makecontext(&context.registers, reinterpret_cast<void (*)()>(&first_frame), 4,
                static_cast<unsigned>(code >> 32), static_cast<unsigned>(code),
                static_cast<unsigned>(data >> 32), static_cast<unsigned>(data));
}

void switch_context(Context& from, Context& to) { swapcontext(&from.registers, &to.registers); }

}  // namespace simt

#endif
