// What happens before what, told to the race checker: a launch before its threads, they before what
// follows it; barriers and __syncwarp; fences with atomics. Nothing else orders two threads.
//
// Each block has orderings of its own at addresses that no other block uses, and so have shared
// arrays: an ordering that lived on would order the blocks, and hide the races between them.
#include "machine.h"

#ifdef SIMT_TSAN
#include <sys/mman.h>
#endif

namespace simt {

#ifdef SIMT_TSAN

namespace {

constexpr size_t kArena = size_t{16} << 20;
constexpr size_t kOrdering = 8;  // bytes between two, the checker's own step
// What one block may take: shared memory with room for alignment, and its orderings.
constexpr size_t kBlockMost =
    kSharedLimit + kSharedArrays * 64 + (2 + 2 * kBlockThreads) * kOrdering + 4096;

// Mapping anew makes the checker forget what it knew of these addresses.
void renew_arena(Worker& worker) {
    if (worker.arena) munmap(worker.arena, kArena);
    void* pages = mmap(nullptr, kArena, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) fail(nullptr, "no addresses for shared memory");
    worker.arena = static_cast<char*>(pages);
    worker.arena_used = 0;
}

}  // namespace

void* take_fresh(Worker& worker, size_t bytes) {
    void* taken = worker.arena + worker.arena_used;
    worker.arena_used += (bytes + 15) & ~size_t{15};
    return taken;
}

void* barrier_order(Worker& worker, unsigned generation) {
    return worker.meeting + (generation & 1) * kOrdering;
}

void* warp_order(Worker& worker, unsigned warp, unsigned mask) {
    const auto lowest = static_cast<unsigned>(__builtin_ctz(mask));
    const unsigned turn = (worker.warps[warp].turns >> lowest) & 1;
    return worker.meeting + (2 + 2 * (warp * 32 + lowest) + turn) * kOrdering;
}

void begin_launch_order(Worker& worker) {
    if (!worker.arena) renew_arena(worker);
    if (kArena - worker.arena_used < kBlockMost) renew_arena(worker);
    worker.start = static_cast<char*>(take_fresh(worker, kOrdering));
    worker.end = static_cast<char*>(take_fresh(worker, kOrdering));
    order_release(worker.start);
}

void begin_block_order(Worker& worker) {
    if (kArena - worker.arena_used < kBlockMost) {
        // The threads so far end here, for the host; those to come start from what started the launch
        // and from the host, which has not looked at what they wrote.
        order_acquire(worker.end);
        renew_arena(worker);
        worker.start = static_cast<char*>(take_fresh(worker, kOrdering));
        worker.end = static_cast<char*>(take_fresh(worker, kOrdering));
        order_release(worker.start);
    }
    const size_t orderings = 2 + 2 * ((worker.threads + 31) / 32) * 32;
    worker.meeting = static_cast<char*>(take_fresh(worker, orderings * kOrdering));
}

void end_launch_order(Worker& worker) { order_acquire(worker.end); }
void begin_thread_order(Fiber& fiber) {
    fiber.fenced = false;
    fiber.atomics = 0;
    order_acquire(fiber.worker->start);
}
void end_thread_order(Fiber& fiber) { order_release(fiber.worker->end); }

// As fences of C++ work: what comes before a fence is published by later atomics of this thread,
// and a fence takes in what earlier atomics of this thread have met.
void thread_fence() {
    if (!current) return;
    Fiber& fiber = running();
    fiber.fenced = true;
    const unsigned kept = fiber.atomics < kAtomics ? fiber.atomics : kAtomics;
    for (unsigned i = 0; i < kept; ++i) order_acquire(fiber.atomic[i]);
    fiber.atomics = 0;
}

void before_atomic(void* address) {
    if (current && running().fenced) order_release(address);
}

void after_atomic(void* address) {
    if (!current) return;
    Fiber& fiber = running();
    fiber.atomic[fiber.atomics++ % kAtomics] = address;
}

#else

void* barrier_order(Worker&, unsigned) { return nullptr; }
void* warp_order(Worker&, unsigned, unsigned) { return nullptr; }
void begin_launch_order(Worker&) {}
void begin_block_order(Worker&) {}
void end_launch_order(Worker&) {}
void begin_thread_order(Fiber&) {}
void end_thread_order(Fiber&) {}
void thread_fence() {}

#endif

}  // namespace simt
