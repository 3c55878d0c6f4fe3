// The switch on x86-64: saves the registers that the System V ABI has a callee keep, swaps stacks.
// No system call, so that a kernel of many barriers costs nanoseconds a thread and barrier.
#include "context.h"

#ifndef SIMT_UCONTEXT

#include <cstdint>

extern "C" void simt_swap_stacks(void** save, void* load);
extern "C" void simt_first_frame();

asm(R"(
    .text
    .globl  simt_swap_stacks
    .hidden simt_swap_stacks
    .type   simt_swap_stacks, @function
simt_swap_stacks:
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    movq    %rsp, (%rdi)
    movq    %rsi, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    ret
    .size   simt_swap_stacks, . - simt_swap_stacks

    .globl  simt_first_frame
    .hidden simt_first_frame
    .type   simt_first_frame, @function
simt_first_frame:
    movq    %r12, %rdi
    call    *%r13
    ud2
    .size   simt_first_frame, . - simt_first_frame
    .section .note.GNU-stack, "", @progbits
    .text
)");

namespace simt {

void make_context(Context& context, void* stack, size_t bytes, void (*entry)(void*),
                  void* argument) {
    auto* top = reinterpret_cast<uintptr_t*>(static_cast<char*>(stack) + bytes);
    // What simt_swap_stacks pops, from the top down. The two zeros end a debugger's walk and leave
    // the stack aligned to 16 bytes when simt_first_frame calls the entry.
    const uintptr_t frame[] = {
        0,
        0,
        reinterpret_cast<uintptr_t>(&simt_first_frame),  // where its `ret` goes
        0,                                               // rbp
        0,                                               // rbx
        reinterpret_cast<uintptr_t>(argument),           // r12
        reinterpret_cast<uintptr_t>(entry),              // r13
        0,                                               // r14
        0,                                               // r15
    };
    for (const uintptr_t word : frame) *--top = word;
    context.stack_pointer = top;
}

void switch_context(Context& from, Context& to) {
    simt_swap_stacks(&from.stack_pointer, to.stack_pointer);
}

}  // namespace simt

#endif
