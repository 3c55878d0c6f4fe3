// __syncthreads and its voting forms: all threads of the block that have not returned, at one place.
#include "machine.h"

namespace simt {

void complete_barrier(Worker& worker) {
    Barrier& barrier = worker.barrier;
    if (barrier.waiting == 0 || barrier.waiting + worker.finished < worker.threads) return;
    const bool reverse = worker.launch->order == Order::kReverse;
    for (unsigned i = 0; i < worker.threads; ++i) {
        Fiber* fiber = worker.fibers[reverse ? worker.threads - 1 - i : i];
        if (fiber->state != State::kAtBarrier) continue;
        fiber->result = barrier.yes;
        fiber->present = barrier.waiting;
        make_ready(worker, fiber);
    }
    barrier.waiting = 0;
    barrier.yes = 0;
    ++barrier.generation;
}

unsigned sync_threads(bool predicate, Site site) {
    Fiber& fiber = running();
    Worker& worker = *fiber.worker;
    Barrier& barrier = worker.barrier;
    if (barrier.waiting > 0 && !same_place(barrier.site, site)) {
        fail(&fiber, "divergent barrier: this thread is at %s, %s:%d; %u threads wait at %s, %s:%d",
             site.what, site.file, site.line, barrier.waiting, barrier.site.what,
             barrier.site.file, barrier.site.line);
    }
    // Two orderings take turns: a fast thread may be in the next barrier while a slow one leaves.
    void* order = barrier_order(worker, barrier.generation);
    order_release(order);
    barrier.site = site;
    ++barrier.waiting;
    if (predicate) ++barrier.yes;
    fiber.call.site = site;
    fiber.state = State::kAtBarrier;
    complete_barrier(worker);
    pass_on(fiber);
    order_acquire(order);
    return static_cast<unsigned>(fiber.result);
}

unsigned threads_at_barrier() { return running().present; }

}  // namespace simt
