// Fibers: a guarded stack each, made once and used again for every block and launch.
#include "machine.h"

#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace simt {

__thread const Coordinates* current = nullptr;

namespace {

// Frames grow under the address sanitizer, pages that are not touched cost nothing.
size_t stack_bytes() {
    static const size_t bytes = [] {
        const char* text = getenv("SIMT_STACK_KB");
        const size_t kib = text ? strtoull(text, nullptr, 10) : 256;
        return (kib < 16 ? 16 : kib) * 1024;
    }();
    return bytes;
}

// A fiber takes thread after thread; finish_thread returns when it was given the next one.
void run_threads(void* argument) {
    auto& fiber = *static_cast<Fiber*>(argument);
    after_switch(fiber.stack, fiber.worker->left->stack);
    for (;;) {
        const Launch& launch = *fiber.worker->launch;
        begin_thread_order(fiber);
        launch.kernel->kernel.call(launch.kernel->kernel.function, launch.parameters);
        end_thread_order(fiber);
        finish_thread(fiber);
    }
}

Fiber* make_fiber(Worker& worker) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = stack_bytes();
    void* pages = mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) fail(nullptr, "no memory for the stack of a thread");
    if (mprotect(pages, page, PROT_NONE) != 0) fail(nullptr, "a stack's guard page is refused");
    char* stack = static_cast<char*>(pages) + page;
    auto* fiber = new Fiber;
    fiber->worker = &worker;
    watch_new_stack(fiber->stack, stack, bytes);
    make_context(fiber->context, stack, bytes, &run_threads, fiber);
    return fiber;
}

// Blocks take turns between groups of fibers. Threads that follow one another on a fiber are ordered
// to the race checker, and a barrier spreads that over the block: with one group no race between two
// blocks would be left. A fiber takes it most of a megabyte and a millisecond, so groups are few.
unsigned fiber_groups([[maybe_unused]] const Worker& worker) {
#ifdef SIMT_TSAN
    const unsigned fit = 256 / worker.threads;
    const unsigned groups = fit < 2 ? 2 : fit > 8 ? 8 : fit;
    return groups < worker.launch->blocks ? groups : static_cast<unsigned>(worker.launch->blocks);
#else
    return 1;
#endif
}

}  // namespace

void prepare_fibers(Worker& worker) {
    worker.host.worker = &worker;
    watch_host_stack(worker.host.stack);
    const unsigned count = worker.threads * fiber_groups(worker);
    while (worker.made < count) worker.pool[worker.made++] = make_fiber(worker);
    worker.turn = 0;
    for (unsigned i = 0; i < worker.threads; ++i) worker.fibers[i] = worker.pool[i];
}

// Within a group threads move on by one each time, which finds some more races.
void choose_fibers(Worker& worker) {
    const unsigned groups = fiber_groups(worker);
    const uint64_t turn = worker.turn++;
    if (groups == 1) return;
    Fiber** group = worker.pool + turn % groups * worker.threads;
    for (unsigned i = 0; i < worker.threads; ++i) {
        worker.fibers[i] = group[(i + turn / groups) % worker.threads];
    }
}

void switch_fiber(Fiber& from, Fiber& to) {
    Worker& worker = *from.worker;
    worker.left = &from;
    current = &to == &worker.host ? nullptr : &to.at;
    before_switch(from.stack, to.stack);
    switch_context(from.context, to.context);
    after_switch(from.stack, worker.left->stack);
}

// `at` is a fiber's first member, so its address is the fiber's.
Fiber& running() {
    if (!current) fail(nullptr, "a kernel's function was called outside of a launch");
    return *reinterpret_cast<Fiber*>(const_cast<Coordinates*>(current));
}

}  // namespace simt
